// Durations on the command line: as flock(1) writes them (seconds, decimals allowed), or with
// units.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/clock.hpp"

namespace holdfast::cli {

/// "5" and "5s" are seconds, "0.5" half of one; "250ms", "1m", "2h", "1m30s". Nothing for anything
/// else, and for more than a year.
std::optional<milliseconds> parse_wait(std::string_view);

/// For people: "0.5 s", "21 s", "3m12s", "2h05m".
std::string spoken(milliseconds);

}  // namespace holdfast::cli
