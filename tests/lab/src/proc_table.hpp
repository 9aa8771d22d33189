// Reading /proc: which processes belong together, and whether they really are stopped. The signal
// calls return before their effect, so the kernel's own table is the proof.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::lab::detail {

/// `leader`, the members of its process group, and all descendants of these, zombies left out.
std::vector<pid_t> family_of(pid_t leader);

/// The state letters of all threads of `pid`, as in /proc/PID/stat; empty when there is no such
/// process.
std::string thread_states(pid_t pid);

/// True while `pid` waits, uninterruptibly, for a child of its own vfork() that was stopped before
/// it could exec: the parent cannot be stopped then, and cannot run either.
bool waits_for_stopped_child(pid_t pid);

}  // namespace holdfast::lab::detail
