#include "floors/postgresql_floor.hpp"

#include <array>
#include <string_view>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

[[noreturn]] void fail(PGconn* connection, const std::string& what) {
    throw SelfCheck("bare libpq: " + what + ": " + PQerrorMessage(connection));
}

}  // namespace

PostgresqlFloor::Connection PostgresqlFloor::connect(const std::string& url, bool synced) {
    Connection connection(PQconnectdb(url.c_str()));
    if (PQstatus(connection.get()) != CONNECTION_OK) fail(connection.get(), "connect");
    const auto run = [&](const std::string& sql) {
        const Result done(PQexec(connection.get(), sql.c_str()));
        if (PQresultStatus(done.get()) != PGRES_COMMAND_OK) fail(connection.get(), sql);
    };
    run(std::string("SET synchronous_commit = ") + (synced ? "on" : "off"));
    run("SET client_min_messages = warning");
    run("CREATE TABLE IF NOT EXISTS bench_floor (name text PRIMARY KEY, owner text NOT NULL, "
        "expires timestamptz NOT NULL) WITH (fillfactor = 50)");
    for (const auto& [name, sql] :
         {std::pair{"take",
                    "INSERT INTO bench_floor VALUES ('bench', $1, clock_timestamp() + '10 s') ON "
                    "CONFLICT (name) DO NOTHING"},
          {"free", "DELETE FROM bench_floor WHERE name = 'bench' AND owner = $1"}}) {
        const Result done(PQprepare(connection.get(), name, sql, 1, nullptr));
        if (PQresultStatus(done.get()) != PGRES_COMMAND_OK) fail(connection.get(), name);
    }
    return connection;
}

PostgresqlFloor::PostgresqlFloor(const std::string& url, bool release_synced)
    : take_(connect(url, true)), free_(connect(url, release_synced)) {
    cycle();
}

void PostgresqlFloor::change_one(PGconn* connection, const char* statement,
                                 const std::string& owner) {
    const std::array<const char*, 1> values{owner.c_str()};
    const Result done(PQexecPrepared(connection, statement, 1, values.data(), nullptr, nullptr, 0));
    if (PQresultStatus(done.get()) != PGRES_COMMAND_OK ||
        std::string_view(PQcmdTuples(done.get())) != "1")
        fail(connection, std::string(statement) + " changed no row");
}

void PostgresqlFloor::cycle() {
    const std::string owner = "0123456789012345678901.host." + std::to_string(++counter_);
    change_one(take_.get(), "take", owner);
    change_one(free_.get(), "free", owner);
}

}  // namespace holdfast::bench
