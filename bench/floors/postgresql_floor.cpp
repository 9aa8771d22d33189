#include "floors/postgresql_floor.hpp"

#include <array>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

void change_one(Libpq& connection, const char* statement, const std::string& owner) {
    const std::array<const char*, 1> values{owner.c_str()};
    if (connection.changed(statement, values) != "1")
        throw SelfCheck(std::string("bare libpq: ") + statement + " changed no row");
}

}  // namespace

Libpq PostgresqlFloor::connect(const std::string& url, bool synced) {
    Libpq connection(url);
    connection.run(std::string("SET synchronous_commit = ") + (synced ? "on" : "off"));
    connection.run("SET client_min_messages = warning");
    connection.run(
        "CREATE TABLE IF NOT EXISTS bench_floor (name text PRIMARY KEY, owner text NOT NULL, "
        "expires timestamptz NOT NULL) WITH (fillfactor = 50)");
    connection.prepare("take",
                       "INSERT INTO bench_floor VALUES ('bench', $1, clock_timestamp() + '10 s') "
                       "ON CONFLICT (name) DO NOTHING",
                       1);
    connection.prepare("free", "DELETE FROM bench_floor WHERE name = 'bench' AND owner = $1", 1);
    return connection;
}

PostgresqlFloor::PostgresqlFloor(const std::string& url, bool release_synced)
    : take_(connect(url, true)), free_(connect(url, release_synced)) {
    cycle();
}

void PostgresqlFloor::cycle() {
    const std::string owner = "0123456789012345678901.host." + std::to_string(++counter_);
    change_one(take_, "take", owner);
    change_one(free_, "free", owner);
}

}  // namespace holdfast::bench
