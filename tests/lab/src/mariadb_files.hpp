// Where MariaDB's programs are, and a fresh data directory for each server.
#pragma once
#include <filesystem>
#include <string>

namespace holdfast::lab::detail {

/// The path of one of MariaDB's programs. Errors: LabError naming the Debian package.
std::string mariadb_program(const std::string& name);
/// A data directory at `target`, with the database and the user `holdfast`: made once in a process,
/// then copied.
void make_mariadb_data(const std::filesystem::path& target);

}  // namespace holdfast::lab::detail
