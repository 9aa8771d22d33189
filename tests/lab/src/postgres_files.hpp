// Where PostgreSQL's programs are, and a fresh database cluster for each server.
#pragma once
#include <filesystem>
#include <string>

namespace holdfast::lab::detail {

/// The path of one of PostgreSQL's programs. Errors: LabError naming the Debian package.
std::string postgres_program(const std::string& name);
/// A fresh database cluster at `target`: made once in a process, then copied.
void make_cluster(const std::filesystem::path& target);

}  // namespace holdfast::lab::detail
