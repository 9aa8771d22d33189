#include "floors/mysql_floor.hpp"

#include <fmt/format.h>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

/// The time as Holdfast's statements have it, and ten seconds.
constexpr const char* in_ten_seconds = "UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 + 10000000";

Libmariadb with_table(const MariadbAddress& at) {
    Libmariadb connection(at);
    connection.change(
        "CREATE TABLE IF NOT EXISTS bench_floor (name VARBINARY(1024) PRIMARY KEY, "
        "owner VARBINARY(512), expires BIGINT NOT NULL) ENGINE = InnoDB ROW_FORMAT = DYNAMIC");
    return connection;
}

void must_change_one(MariadbStatement& statement, const std::string& owner, const char* what) {
    if (statement.change(owner) != 1)
        throw SelfCheck(std::string("bare libmariadb: ") + what + " changed no row");
}

std::string owner_of(std::uint64_t counter) {
    return "0123456789012345678901.host." + std::to_string(counter);
}

}  // namespace

MysqlFloor::MysqlFloor(const MariadbAddress& at)
    : connection_(with_table(at)),
      take_(connection_,
            fmt::format("INSERT IGNORE INTO bench_floor VALUES ('bench', ?, {})", in_ten_seconds)),
      free_(connection_, "DELETE FROM bench_floor WHERE name = 'bench' AND owner = ?") {
    cycle();
}

void MysqlFloor::cycle() {
    const std::string owner = owner_of(++counter_);
    must_change_one(take_, owner, "INSERT");
    must_change_one(free_, owner, "DELETE");
}

MysqlBatch::MysqlBatch(const MariadbAddress& at, std::size_t rows)
    : connection_(with_table(at)), rows_(rows) {
    for (std::size_t i = 0; i < rows; ++i)
        connection_.change(
            fmt::format("INSERT IGNORE INTO bench_floor VALUES ('bench-{:04}', NULL, 0)", i));
    cycles();
}

void MysqlBatch::change_all(const std::string& statements) {
    if (connection_.change(statements) != rows_)
        throw SelfCheck("bare libmariadb: a row of the batch was not changed");
}

std::size_t MysqlBatch::cycles() {
    const std::string owner = owner_of(++counter_);
    std::string take = "BEGIN;", free = take;
    for (std::size_t i = 0; i < rows_; ++i) {
        take += fmt::format(
            "UPDATE bench_floor SET owner = '{}', expires = {} "
            "WHERE name = 'bench-{:04}' AND owner IS NULL;",
            owner, in_ten_seconds, i);
        free += fmt::format(
            "UPDATE bench_floor SET owner = NULL WHERE name = 'bench-{:04}' AND owner = '{}';", i,
            owner);
    }
    change_all(take + "COMMIT");
    change_all(free + "COMMIT");
    return rows_;
}

}  // namespace holdfast::bench
