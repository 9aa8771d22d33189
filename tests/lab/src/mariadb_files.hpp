// Where MariaDB's programs are, and a fresh data directory for each server.
#pragma once
#include <filesystem>
#include <string>

namespace holdfast::lab::detail {

/// The path of one of MariaDB's programs. Errors: LabError naming the Debian package.
std::string mariadb_program(const std::string& name);
/// A data directory at `target`, a copy of `from`; where that is empty, of one with the database
/// and the user `holdfast` that is made once in a process.
void make_mariadb_data(const std::filesystem::path& target, const std::filesystem::path& from);

}  // namespace holdfast::lab::detail
