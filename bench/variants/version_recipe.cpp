#include "variants/version_recipe.hpp"

#include <fmt/format.h>

#include <set>

namespace holdfast::bench {

namespace {

/// Each statement is a transaction of its own, as in the articles.
class VersionRecipe final : public Recipe {
public:
    using Update = VersionHow::Update;

    explicit VersionRecipe(VersionHow how) : how_(std::move(how)), connection_(how_.connect()) {
        connection_->create_table(how_.table, fmt::format("state int, version bigint, taken {}",
                                                          connection_->words.time_column));
    }

    bool take(const spi::Attempt& a) override {
        const std::string name(a.name);
        if (rows_.insert(name).second)  // the articles' rows are there from the start
            send("{insert_once} {table} VALUES (?, 0, 0, NULL) {once}", {name});
        const auto found = send("SELECT state, version FROM {table} WHERE name = ?", {name}).rows;
        if (found.empty() || found[0][0] != "0") return false;
        const auto version = std::stoll(found[0][1]);
        const auto updated =
            update("state = 1, version = version + 1, taken = {now}", name, "0", version);
        if (how_.update == Update::counted && updated != 1) return false;
        mine_ = version + 1;
        return true;
    }

    ReleaseResult give_back(const std::string& name, const std::string&) override {
        const auto updated = update("state = 0, version = version + 1", name, "1", mine_);
        // A client that does not look at the count takes it for released.
        return how_.update != Update::counted || updated == 1 ? ReleaseResult::released
                                                              : ReleaseResult::already_expired;
    }

    std::optional<milliseconds> look_within() const override {
        if (how_.pause == milliseconds::zero()) return std::nullopt;
        return how_.pause;
    }

private:
    /// How many rows were.
    std::size_t update(const std::string& to, const std::string& name, const char* state,
                       long long version) {
        const std::string text = "UPDATE {table} SET " + to + " WHERE name = ?";
        if (how_.update == Update::by_name) return send(text, {name}).changed;
        return send(text + " AND state = ? AND version = ?", {name, state, std::to_string(version)})
            .changed;
    }
    SqlAnswer send(const std::string& text, const SqlConnection::Values& values) {
        count();
        const auto& words = connection_->words;
        return connection_->run(
            fmt::format(fmt::runtime(text), fmt::arg("table", how_.table),
                        fmt::arg("now", words.now), fmt::arg("insert_once", words.insert_once),
                        fmt::arg("once", words.once)),
            values);
    }

    VersionHow how_;
    std::unique_ptr<SqlConnection> connection_;
    std::set<std::string> rows_;
    long long mine_ = 0;  ///< the version under which this client took the lock
};

}  // namespace

std::unique_ptr<Recipe> make_version_recipe(const VersionHow& how) {
    return std::make_unique<VersionRecipe>(how);
}

}  // namespace holdfast::bench
