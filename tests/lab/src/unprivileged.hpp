// Servers that refuse root, or should not have its rights, are run as a user who has none.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::lab::detail {

/// The command as it has to be run here.
std::vector<std::string> unprivileged(std::vector<std::string> argv);
/// Gives a path, and all below it, to the user who runs such servers.
void give_away(const std::filesystem::path& path);
/// Runs a program to its end as that user. Errors: LabError with the end of its output.
void run_unprivileged(const std::vector<std::string>& argv);

}  // namespace holdfast::lab::detail
