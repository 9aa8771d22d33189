// What `holdfast run` was asked for, checked.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "holdfast/clock.hpp"

namespace holdfast::cli {

struct RunOptions {
    std::string name;
    milliseconds wait = forever;
    std::optional<milliseconds> ttl;
    milliseconds min_hold{0};
    milliseconds max_hold = forever;
    std::optional<milliseconds> grace;
    int conflict_exit = 75;
    std::string label;
    int status_fd = -1;
    std::vector<std::string> command;
    std::string path;  ///< of the command's executable
};

/// How the guardian times its signals for a ttl.
struct Timing {
    milliseconds ttl, grace, margin;
    milliseconds tick;  ///< how often renewals are looked for
};
/// Nothing, with the reason in `why`, when the grace is too long for the ttl or for max_hold.
std::optional<Timing> timing(const RunOptions&, milliseconds ttl, std::string& why);

}  // namespace holdfast::cli
