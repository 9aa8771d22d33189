// Mistakes on the command line, in our own words: exit 64 with the nearest thing that exists.
#pragma once
#include <CLI/App.hpp>
#include <optional>

#include "args.hpp"

namespace holdfast::cli {

/// The exit code when the subcommand is missing or unknown.
std::optional<int> refuse_subcommand(const CLI::App&, const Split&);

/// Says what the parser found; returns the exit code.
int usage_error(const CLI::App&, const Split&, const CLI::ParseError&);

/// The exit code when an option or argument is given and empty: hardly ever meant, and usually a
/// variable that is not set. `--label` and `--value` may be empty, and so may a prefix; of an empty
/// name the library complains.
std::optional<int> refuse_empty(const CLI::App&, const Split&);

/// "holdfast: TEXT", then where help is; returns 64.
int usage(std::string_view text, std::string_view subcommand = {});

}  // namespace holdfast::cli
