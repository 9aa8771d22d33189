// One careful way to start a program from a process that may have many threads: posix_spawn, with
// every descriptor closed that is not named, and with signals as a fresh shell would have them.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace holdfast::lab::detail {

struct SpawnRequest {
    std::vector<std::string> argv;                                 // argv[0] is an absolute path
    std::vector<std::pair<std::string, std::string>> environment;  // added to ours, or replacing
    std::string directory = "/";
    std::vector<std::pair<int, int>> descriptors;  // (ours, the child's); standard ones not named
                                                   // are /dev/null
    bool new_session = false;                      // else a new process group in our session
};

/// Starts the program and returns its process id, which is also its process group.
///
/// The child's descriptors must be numbered 0, 1, 2, 3 without others in between; all else is
/// closed. Errors: LabError. Thread safety: any thread.
pid_t spawn(const SpawnRequest& request);

/// The absolute path of `program`, looked for in $PATH and in the places where Debian puts servers;
/// empty when there is none.
std::string find_program(const std::string& program);

}  // namespace holdfast::lab::detail
