// doc-postgresql://, doc-mysql://: the documents' database locks. `insert`: a row is the lock,
// DELETE frees it. `owner`: the row has an owner and a count, read by SELECT ... FOR UPDATE, so
// that its owner may enter again. `version`: the row stays, see version_recipe.hpp.
#include "variants/sql_recipe.hpp"

#include <fmt/format.h>

#include "bench.hpp"
#include "variants/documents.hpp"
#include "variants/recipe.hpp"
#include "variants/version_recipe.hpp"

namespace holdfast::bench {

namespace {

struct How {
    SqlConnect connect;
    std::string table, identity;
    bool counts = false, checked = false;
    milliseconds pause{};
};

class SqlRecipe final : public Recipe {
public:
    explicit SqlRecipe(How how) : how_(std::move(how)), connection_(how_.connect()) {
        connection_->create_table(how_.table, fmt::format("owner varchar(255), count int, taken {}",
                                                          connection_->words.time_column));
    }

    bool take(const spi::Attempt& a) override {
        const std::string name(a.name), owner = identity(a.owner);
        try {
            SqlTransaction all(*connection_);
            if (const auto row = how_.counts ? look(name) : std::nullopt) {
                if (row->owner != owner) return false;
                send("UPDATE {table} SET count = count + 1, taken = {now} WHERE name = ?", {name});
            } else {
                send("INSERT INTO {table} VALUES (?, ?, 1, {now})", {name, owner});
            }
            all.commit();
            return true;
        } catch (const SqlRefused&) {
            return false;
        }
    }

    ReleaseResult give_back(const std::string& name, const std::string& id) override {
        const std::string owner = identity(id);
        SqlTransaction all(*connection_);
        if (how_.counts) {
            const auto row = look(name);
            if (!row) return ReleaseResult::already_expired;
            if (row->owner != owner) return ReleaseResult::owned_by_other;
            if (row->count > 1) {
                send("UPDATE {table} SET count = count - 1 WHERE name = ?", {name});
                all.commit();
                return ReleaseResult::released;
            }
        }
        const auto gone =
            how_.checked ? send("DELETE FROM {table} WHERE name = ? AND owner = ?", {name, owner})
                         : send("DELETE FROM {table} WHERE name = ?", {name});
        all.commit();
        return gone.changed == 1 ? ReleaseResult::released : ReleaseResult::already_expired;
    }

    std::optional<milliseconds> look_within() const override {
        if (how_.pause == milliseconds::zero()) return std::nullopt;
        return how_.pause;
    }

private:
    std::string identity(std::string_view owner) const {
        return how_.identity.empty() ? std::string(owner) : how_.identity;
    }
    struct Row {
        std::string owner;
        int count = 0;
    };
    std::optional<Row> look(const std::string& name) {
        const auto found =
            send("SELECT owner, count FROM {table} WHERE name = ? FOR UPDATE", {name});
        if (found.rows.empty()) return std::nullopt;
        return Row{found.rows[0][0], std::stoi(found.rows[0][1])};
    }
    SqlAnswer send(const char* text, const SqlConnection::Values& values) {
        count();
        return connection_->run(fmt::format(fmt::runtime(text), fmt::arg("table", how_.table),
                                            fmt::arg("now", connection_->words.now)),
                                values);
    }

    How how_;
    std::unique_ptr<SqlConnection> connection_;
};

/// Of one database: `connect` to the one that the settings name.
spi::Descriptor describe(const std::string& backend, std::uint16_t port,
                         SqlConnect (*connect)(const spi::Settings&)) {
    using spi::OptionType;
    spi::Descriptor d;
    d.name = "doc-" + backend;
    d.schemes = {d.name};
    d.summary = "the documents' database locks, for comparison";
    d.example = d.name + "://user@127.0.0.1:" + std::to_string(port) + "/database?form=owner";
    d.default_port = port;
    d.takes_credentials = true;
    d.path = spi::Descriptor::Path::required;
    d.path_meaning = "the database";
    d.options = {
        {.name = "form",
         .type = OptionType::choice,
         .fallback = "insert",
         .meaning = "The row alone, with an owner and a count, or with state and version.",
         .choices = "insert|owner|version"},
        {.name = "update",
         .type = OptionType::choice,
         .fallback = "by-name",
         .meaning = "form=version: what the UPDATE compares, and whether its count is looked at.",
         .choices = "by-name|uncounted|counted"},
        {.name = "give",
         .type = OptionType::choice,
         .fallback = "by-name",
         .meaning = "What DELETE looks at.",
         .choices = "by-name|checked"},
        {.name = "table",
         .type = OptionType::text,
         .fallback = "doc_lock",
         .meaning = "The table, made when it is not there."},
        {.name = "identity",
         .type = OptionType::text,
         .fallback = "",
         .meaning = "Host and thread, where these are the owner; empty: each acquisition its own."},
        {.name = "pause",
         .type = OptionType::duration,
         .fallback = "50ms",
         .meaning = "How long a waiter sleeps before it tries again; 0ms: it does not wait."},
    };
    d.capabilities = [](const spi::Settings&) { return Capabilities(SafetyClass::d, {}); };
    d.make = [connect](const spi::Settings& s, spi::Context) {
        How how;
        how.connect = connect(s);
        how.table = s.text("table");
        how.identity = s.text("identity");
        how.counts = s.text("form") == "owner";
        how.checked = s.text("give") == "checked";
        how.pause = s.duration("pause");
        if (s.text("form") == "version") {
            using Update = VersionHow::Update;
            const VersionHow version{how.connect, how.table,
                                     s.text("update") == "counted"     ? Update::counted
                                     : s.text("update") == "uncounted" ? Update::uncounted
                                                                       : Update::by_name,
                                     how.pause};
            return make_recipe_backend([version] { return make_version_recipe(version); });
        }
        return make_recipe_backend([how] { return std::make_unique<SqlRecipe>(how); });
    };
    return d;
}

void sweep_once(SqlConnection& connection, const std::string& table, milliseconds age,
                Sweeps what) {
    const auto there = connection.run(fmt::format("SELECT count(*) FROM information_schema.tables "
                                                  "WHERE table_schema = {} AND table_name = ?",
                                                  connection.words.schema),
                                      {table});
    if (there.rows[0][0] == "0") return;
    const auto old = fmt::format("taken < {} - {}", connection.words.now,
                                 fmt::format(fmt::runtime(connection.words.interval), age.count()));
    try {
        connection.run(
            what == Sweeps::rows
                ? fmt::format("DELETE FROM {} WHERE {}", table, old)
                : fmt::format("UPDATE {} SET state = 0, version = version + 1 WHERE state = 1 AND "
                              "{}",
                              table, old));
    } catch (const SqlRefused&) {
        // Some other transaction was in its way: the next time.
    }
}

}  // namespace

spi::Descriptor postgresql_recipes() {
    return describe("postgresql", 5432, [](const spi::Settings& s) {
        return postgresql_at(fmt::format("host={} port={} user={} dbname={}", s.hosts.front().host,
                                         s.hosts.front().port, s.user, s.path.substr(1)));
    });
}

spi::Descriptor mysql_recipes() {
    return describe("mysql", 3306, [](const spi::Settings& s) {
        return mysql_at({s.hosts.front().host, s.hosts.front().port, s.user, s.path.substr(1)});
    });
}

Sweeper::Sweeper(const SqlConnect& connect, const std::string& table, milliseconds age, Sweeps what)
    : thread_([connect, table, age, what](const std::stop_token& stop) {
          try {
              const auto connection = connect();
              // The task's period is a twentieth of the age.
              while (!lab::reached([&] { return stop.stop_requested(); }, age / 20))
                  sweep_once(*connection, table, age, what);
          } catch (const std::exception& error) {
              // What it should have freed stays, and the scenario says so.
              fmt::print(stderr, "sweeper: {}\n", error.what());
          }
      }) {}

}  // namespace holdfast::bench
