#include "variants/version_recipe.hpp"

#include <fmt/format.h>

#include <pqxx/pqxx>
#include <set>

#include "variants/sql_table.hpp"

namespace holdfast::bench {

namespace {

/// Each statement is a transaction of its own, as in the articles.
class VersionRecipe final : public Recipe {
public:
    using Update = VersionHow::Update;

    explicit VersionRecipe(VersionHow how) : how_(std::move(how)), connection_(how_.connect) {
        create_table(connection_, how_.table, "state int, version bigint, taken timestamptz");
    }

    bool take(const spi::Attempt& a) override {
        const std::string name(a.name);
        if (rows_.insert(name).second)  // the articles' rows are there from the start
            send("INSERT INTO {} VALUES ($1, 0, 0, NULL) ON CONFLICT DO NOTHING", name);
        const auto row = send("SELECT state, version FROM {} WHERE name = $1", name);
        if (row.empty() || row[0][0].as<int>() != 0) return false;
        const auto version = row[0][1].as<long long>();
        constexpr const char* text =
            "UPDATE {} SET state = 1, version = version + 1, taken = clock_timestamp() "
            "WHERE name = $1";
        const auto updated =
            how_.update == Update::by_name
                ? send(text, name)
                : send((std::string(text) + " AND state = 0 AND version = $2").c_str(), name,
                       version);
        if (how_.update == Update::counted && updated.affected_rows() != 1) return false;
        mine_ = version + 1;
        return true;
    }

    ReleaseResult give_back(const std::string& name, const std::string&) override {
        constexpr const char* text =
            "UPDATE {} SET state = 0, version = version + 1 WHERE name = $1";
        const auto updated =
            how_.update == Update::by_name
                ? send(text, name)
                : send((std::string(text) + " AND state = 1 AND version = $2").c_str(), name,
                       mine_);
        // Who does not look at the count takes it for released.
        return how_.update != Update::counted || updated.affected_rows() == 1
                   ? ReleaseResult::released
                   : ReleaseResult::already_expired;
    }

    std::optional<milliseconds> look_within() const override {
        if (how_.pause == milliseconds::zero()) return std::nullopt;
        return how_.pause;
    }

private:
    template <class... Values>
    pqxx::result send(const char* text, const Values&... values) {
        count();
        pqxx::nontransaction alone(connection_);
        return alone.exec_params(fmt::format(fmt::runtime(text), how_.table), values...);
    }

    VersionHow how_;
    pqxx::connection connection_;
    std::set<std::string> rows_;
    long long mine_ = 0;  ///< the version under which this client took the lock
};

}  // namespace

std::unique_ptr<Recipe> make_version_recipe(const VersionHow& how) {
    return std::make_unique<VersionRecipe>(how);
}

}  // namespace holdfast::bench
