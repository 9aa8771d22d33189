// What is left of a lab when its process dies by kill -9 must still be cleared away. The kernel's
// parent-death signal is no help: it follows the *thread* that forked, and reaches one process, not
// a group. So a small watcher in a session of its own holds the other end of a socket from us, and
// does the clearing when that socket closes, for whatever reason.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

namespace holdfast::lab::detail {

/// The watcher of this process, started at first use. Thread safety: any thread. A forked child
/// forgets its parent's watcher and gets one of its own when it needs one.
class Reaper {
public:
    static Reaper& instance();

    /// Has the process group of `leader` and all its descendants killed when this process dies.
    /// Returns the slot for forget(). Errors: LabError when the watcher cannot be started.
    std::uint64_t watch_group(pid_t leader);

    /// Has `path` removed, after all groups are gone, when this process dies. `path` is absolute
    /// and contains no line break. Errors: as watch_group().
    std::uint64_t watch_directory(const std::filesystem::path& path);

    /// Takes back what a watch_ call asked for. Never fails.
    void forget(std::uint64_t slot) noexcept;

private:
    Reaper();
    std::uint64_t watch(const std::string& what);
    bool send(const std::string& line) noexcept;
    void start();

    std::mutex mutex_;
    int socket_ = -1;
    std::uint64_t next_slot_ = 1;
    std::map<std::uint64_t, std::string> watched_;
};

}  // namespace holdfast::lab::detail
