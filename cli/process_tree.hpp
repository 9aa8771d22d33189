// Finding and signalling everything that a process has started, wherever it has moved itself.
#pragma once
#include <sys/types.h>

#include <vector>

namespace holdfast::cli {

struct Process {
    pid_t pid = 0;
    pid_t parent = 0;
    pid_t group = 0;
    char state = '?';
    int threads = 0;
    unsigned long long started = 0;  ///< ticks since boot: tells a reused number apart
};

/// All processes that can be seen.
std::vector<Process> processes();

/// Every living descendant of `root` (zombies left out), parents first. One pass over /proc: what
/// forks meanwhile may be missed, and what this user may not see (hidepid). That none is found
/// proves nothing; has_children() does.
std::vector<Process> descendants(pid_t root);

/// False: a subreaper that asks this has no descendants any more. True: it has, or some that it has
/// not waited for.
bool has_children() noexcept;

/// Signals exactly this process, not a later one with the same number. False when it may not be
/// signalled: it belongs to another user.
bool send_signal(const Process&, int number);

/// Signals each of `all`; those of `group` in one step, so that none can fork away meanwhile.
/// `leader_waits`: the group's leader has not been reaped, so its number cannot mean another group.
/// Returns those that may not be signalled.
std::vector<Process> signal_all(const std::vector<Process>& all, pid_t group, bool leader_waits,
                                int number);

}  // namespace holdfast::cli
