#include "variants/sql_table.hpp"

#include <fmt/format.h>

namespace holdfast::bench {

void create_table(pqxx::connection& connection, const std::string& table, const char* columns) {
    pqxx::work work(connection);
    work.exec("SELECT pg_advisory_xact_lock(1)");  // two clients may create it at once
    work.exec(
        fmt::format("CREATE TABLE IF NOT EXISTS {} (name text PRIMARY KEY, {})", table, columns));
    work.commit();
}

}  // namespace holdfast::bench
