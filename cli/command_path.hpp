// Finds the command before the lock is taken: a typing mistake must not cost anybody the lock.
#pragma once
#include <string>

namespace holdfast::cli {

struct CommandPath {
    std::string path;  ///< what to execute; empty on error
    int exit = 0;      ///< 126 or 127
    std::string why;
};

/// Searches PATH as a shell does; a word with a slash is a path. The interpreter of a script, and a
/// program's loader, must be there, too.
CommandPath find_command(const std::string& word);

}  // namespace holdfast::cli
