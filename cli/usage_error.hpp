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

/// "holdfast: TEXT", then where help is; returns 64.
int usage(std::string_view text, std::string_view subcommand = {});

}  // namespace holdfast::cli
