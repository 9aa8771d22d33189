// Signals as data: blocked for every thread, read from a descriptor by the main loop.
#pragma once
#include <csignal>
#include <optional>

#include "unique_fd.hpp"

namespace holdfast::cli {

/// Blocks what `run` forwards or acts on. Make it while the process has one thread, before the
/// guardian: later threads inherit the mask.
class Signals {
public:
    Signals();
    int fd() const noexcept { return fd_.get(); }
    /// The mask that holdfast was started with, for the command.
    const sigset_t& original() const noexcept { return original_; }
    /// The next signal; does not block.
    std::optional<int> next();

private:
    sigset_t original_{};
    UniqueFd fd_;
};

/// One that ends a wait, or the command: INT TERM HUP QUIT.
inline bool ends_things(int number) {
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

/// Ends this process as the signal does, so that a shell's loop ends with it; `job`: the whole
/// process group, as the terminal would have done. Returns when the signal is ignored.
void die_of(int number, bool job);

}  // namespace holdfast::cli
