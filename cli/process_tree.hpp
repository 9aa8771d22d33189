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
    unsigned long long started = 0;  ///< ticks since boot: tells a reused number apart
};

/// All processes that can be seen.
std::vector<Process> processes();

/// Every living descendant of `root` (zombies left out), parents first. One pass over /proc: what
/// forks meanwhile may be missed, so callers that must reach all repeat until none is found.
std::vector<Process> descendants(pid_t root);

/// Signals exactly this process, not a later one with the same number.
void send_signal(const Process&, int number);

}  // namespace holdfast::cli
