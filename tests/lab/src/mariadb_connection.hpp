// The lab's own few words to MariaDB, over its client library.
#pragma once
#include <filesystem>
#include <string>

#include "holdfast/lab/sql_rows.hpp"

namespace holdfast::lab::detail {

/// Runs statements as root on a connection of its own and returns the rows of the last one, after
/// a row with the names of the columns. Errors: LabError with the server's words.
SqlRows run_mariadb(const std::filesystem::path& socket, const std::string& database,
                    const std::string& text);

}  // namespace holdfast::lab::detail
