// Where PostgreSQL's programs are, and how they are run: as an unprivileged user, since they refuse
// root.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::lab::detail {

/// The path of one of PostgreSQL's programs. Errors: LabError naming the Debian package.
std::string postgres_program(const std::string& name);
/// The command as it has to be run here.
std::vector<std::string> unprivileged(std::vector<std::string> argv);
/// Gives a path, and all below it, to the user who runs PostgreSQL.
void give_away(const std::filesystem::path& path);
/// Runs a program to its end as that user. Errors: LabError with the end of its output.
void run_unprivileged(const std::vector<std::string>& argv);
/// A fresh database cluster at `target`: made once in a process, then copied.
void make_cluster(const std::filesystem::path& target);

}  // namespace holdfast::lab::detail
