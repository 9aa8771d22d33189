// The table of a SQL recipe.
#pragma once
#include <pqxx/pqxx>
#include <string>

namespace holdfast::bench {

/// Creates it, with the name as its key, unless it is there.
void create_table(pqxx::connection&, const std::string& table, const char* columns);

}  // namespace holdfast::bench
