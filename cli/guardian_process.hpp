// The guardian's own side: what runs in the forked process.
#pragma once
#include "guardian.hpp"

namespace holdfast::cli {

struct Order {
    enum Kind : std::int32_t { go, signal, stop, kill } kind;
    std::int32_t number;  ///< go: 1 to take the terminal; signal: which
};

/// An order with what follows it: the environment, each entry ended by NUL.
inline constexpr std::size_t largest_order = 128 * 1024;

/// Never returns. `parent`: holdfast's process. Ends with 0 when nothing is left to guard.
[[noreturn]] void guardian_main(const GuardianPlan&, DeadlineFile&, UniqueFd socket, pid_t parent);

/// Forks and executes the command as the leader of its own group. Returns its process, or minus
/// errno.
pid_t start_command(const GuardianPlan&, const std::vector<std::string>& environment,
                    bool foreground);

}  // namespace holdfast::cli
