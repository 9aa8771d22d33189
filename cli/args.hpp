// The command line before the option parser sees it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// Whether a command of the user's follows this subcommand, after "--".
inline bool takes_command(std::string_view subcommand) noexcept {
    return subcommand == "run" || subcommand == "elect";
}

struct Split {
    std::vector<std::string> ours;     ///< without the program's name
    std::vector<std::string> command;  ///< after the first "--" of `run` or `elect`
    std::string subcommand;            ///< first word that is no option; may be empty
    bool separator = false;            ///< there was a "--"
};

/// Cuts at the first "--", so that the child's arguments are never parsed. For other subcommands
/// what follows "--" stays ours: names that begin with '-'.
Split split_arguments(int argc, char** argv);

/// True when the URL carries a password: in "user:password@", or as an option.
bool has_password(std::string_view url);

/// Overwrites passwords in our own arguments, so that /proc/PID/cmdline shows them no longer, where
/// a URL belongs and where it stands by mistake. Returns true when --url had one. Call after
/// split_arguments.
bool blank_passwords(int argc, char** argv);

/// The passwords in URLs among `words`, each with the character before it: for never_say().
std::vector<std::string> passwords_in(const std::vector<std::string>& words);

}  // namespace holdfast::cli
