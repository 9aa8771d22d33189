// What `holdfast run` was asked for, checked.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "holdfast/options.hpp"

namespace holdfast::cli {

struct RunOptions {
    std::string subcommand;          ///< "run" or "elect"
    std::vector<std::string> names;  ///< each once
    LockOptions lock;                ///< kind and limit, for each of them
    Mode mode = Mode::exclusive;
    bool exclusive = false;  ///< of a shared_mutex, where the backend has them
    std::uint32_t permits = 1;
    milliseconds wait = forever;
    std::optional<milliseconds> ttl;
    milliseconds min_hold{0};
    milliseconds max_hold = forever;
    std::optional<milliseconds> grace;
    int conflict_exit = 75;
    std::string label;
    int on_ask = 0;  ///< the signal that the command gets when somebody asks for a lock
    int status_fd = -1;
    std::string metrics;  ///< a file; empty: none
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
