// The lab's own few words to PostgreSQL, over libpq.
#pragma once
#include <string>

#include "holdfast/lab/postgres_server.hpp"

namespace holdfast::lab::detail {

/// Runs `sql` on a connection of its own. Errors: LabError with the server's words.
SqlRows run_sql(const std::string& conninfo, const std::string& sql);

}  // namespace holdfast::lab::detail
