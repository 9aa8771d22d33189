// What the completions of bash, zsh and fish offer. Each of their scripts asks `holdfast complete`,
// so all know the same options, and these are the parser's own.
#pragma once
#include <CLI/App.hpp>
#include <optional>

#include "globals.hpp"

namespace holdfast::cli {

/// `holdfast complete`: answers what is on standard input, and returns the exit code; nothing for
/// any other command line. `app` has every option and subcommand, and was not used to parse.
///
/// Standard input has the words after "holdfast", up to the cursor, each ended by a NUL: the last
/// one is to be completed. They may have a password, which arguments would show to other users. The
/// first line of the answer says what fits:
/// - "words": the candidates follow, one on each line, with a tab and a description where it has
///   one; not yet compared with the word.
/// - "files": names of files; nothing follows.
/// - "command N": the words from number N on, counted from 0, are a command line of their own.
///
/// No answer: nothing fits.
std::optional<int> complete(int argc, char** argv, CLI::App& app, Globals& globals);

}  // namespace holdfast::cli
