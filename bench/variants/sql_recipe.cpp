// doc-postgresql://: the documents' database locks on PostgreSQL. `insert`: a row is the lock,
// DELETE frees it. `owner`: the row has an owner and a count, read by SELECT ... FOR UPDATE, so
// that its owner may enter again. `version`: the row stays, see version_recipe.hpp.
#include "variants/sql_recipe.hpp"

#include <fmt/format.h>

#include <pqxx/pqxx>

#include "bench.hpp"
#include "variants/documents.hpp"
#include "variants/recipe.hpp"
#include "variants/sql_table.hpp"
#include "variants/version_recipe.hpp"

namespace holdfast::bench {

namespace {

struct How {
    std::string connect, table, identity;
    bool counts = false, checked = false;
    milliseconds pause{};
};

class SqlRecipe final : public Recipe {
public:
    explicit SqlRecipe(How how) : how_(std::move(how)), connection_(how_.connect) {
        create_table(connection_, how_.table, "owner text, count int, taken timestamptz");
    }

    bool take(const spi::Attempt& a) override {
        const std::string name(a.name), owner = identity(a.owner);
        pqxx::work work(connection_);
        if (how_.counts) {
            const auto row = look(work, name);
            if (!row.empty()) {
                if (row[0][0].as<std::string>() != owner) return false;
                send(work,
                     "UPDATE {} SET count = count + 1, taken = clock_timestamp() WHERE name = $1",
                     name);
                work.commit();
                return true;
            }
        }
        try {
            send(work, "INSERT INTO {} VALUES ($1, $2, 1, clock_timestamp())", name, owner);
            work.commit();
            return true;
        } catch (const pqxx::unique_violation&) {
            return false;
        }
    }

    ReleaseResult give_back(const std::string& name, const std::string& id) override {
        const std::string owner = identity(id);
        pqxx::work work(connection_);
        if (how_.counts) {
            const auto row = look(work, name);
            if (row.empty()) return ReleaseResult::already_expired;
            if (row[0][0].as<std::string>() != owner) return ReleaseResult::owned_by_other;
            if (row[0][1].as<int>() > 1) {
                send(work, "UPDATE {} SET count = count - 1 WHERE name = $1", name);
                work.commit();
                return ReleaseResult::released;
            }
        }
        const auto gone =
            how_.checked ? send(work, "DELETE FROM {} WHERE name = $1 AND owner = $2", name, owner)
                         : send(work, "DELETE FROM {} WHERE name = $1", name);
        work.commit();
        return gone.affected_rows() == 1 ? ReleaseResult::released : ReleaseResult::already_expired;
    }

    std::optional<milliseconds> look_within() const override {
        if (how_.pause == milliseconds::zero()) return std::nullopt;
        return how_.pause;
    }

private:
    std::string identity(std::string_view owner) const {
        return how_.identity.empty() ? std::string(owner) : how_.identity;
    }
    pqxx::result look(pqxx::work& work, const std::string& name) {
        return send(work, "SELECT owner, count FROM {} WHERE name = $1 FOR UPDATE", name);
    }
    template <class... Values>
    pqxx::result send(pqxx::work& work, const char* text, const Values&... values) {
        count();
        return work.exec_params(fmt::format(fmt::runtime(text), how_.table), values...);
    }

    How how_;
    pqxx::connection connection_;
};

}  // namespace

spi::Descriptor sql_recipes() {
    using spi::OptionType;
    spi::Descriptor d;
    d.name = "doc-postgresql";
    d.schemes = {"doc-postgresql"};
    d.summary = "the documents' database locks, for comparison";
    d.example = "doc-postgresql://user@127.0.0.1:5432/database?form=owner";
    d.default_port = 5432;
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
    d.make = [](const spi::Settings& s, spi::Context) {
        How how;
        how.connect = fmt::format("host={} port={} user={} dbname={}", s.hosts.front().host,
                                  s.hosts.front().port, s.user, s.path.substr(1));
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

namespace {

void sweep_once(pqxx::connection& connection, const std::string& table, milliseconds age,
                Sweeps what) {
    pqxx::work work(connection);
    const auto there = work.exec1(fmt::format("SELECT to_regclass('{}') IS NOT NULL", table));
    if (!there[0].as<bool>()) return;
    const char* text =
        what == Sweeps::rows
            ? "DELETE FROM {} WHERE taken < clock_timestamp() - {} * interval '1 ms'"
            : "UPDATE {} SET state = 0, version = version + 1 WHERE state = 1 AND taken < "
              "clock_timestamp() - {} * interval '1 ms'";
    work.exec(fmt::format(fmt::runtime(text), table, age.count()));
    work.commit();
}

}  // namespace

Sweeper::Sweeper(const lab::PostgresServer& server, const std::string& table, milliseconds age,
                 Sweeps what)
    : thread_([url = server.url(), table, age, what](const std::stop_token& stop) {
          try {
              pqxx::connection connection(url);
              // The task's period is a twentieth of the age.
              while (!lab::reached([&] { return stop.stop_requested(); }, age / 20))
                  sweep_once(connection, table, age, what);
          } catch (const std::exception& error) {
              // What it should have freed stays, and the scenario says so.
              fmt::print(stderr, "sweeper: {}\n", error.what());
          }
      }) {}

}  // namespace holdfast::bench
