// A server process under the lab's control: started cleanly, stopped and continued with proof, and
// gone for certain when its owner is gone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {

/// What to start and how.
struct ProcessOptions {
    std::vector<std::string> argv;  ///< the program, looked for in $PATH, and its arguments
    std::string package;            ///< the Debian package to name when the program is missing
    std::filesystem::path log;      ///< standard output and error are appended here; empty: dropped
    std::filesystem::path directory = "/";                         ///< working directory
    std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours, or replacing
    std::vector<int> cpus;  ///< processors to run on; empty: those of this process
};

enum class ProcessState {
    running,
    stopped,  ///< every thread of every process of the family is stopped
    exited,
};

/// How a process ended.
struct ExitStatus {
    bool by_signal = false;
    int code = 0;  ///< the exit code, or the signal's number
};

/// A running program with all its descendants (its family), in a process group of its own.
///
/// The family is killed on destruction, and also when this process dies in any way. Standard input
/// is /dev/null. Thread safety: any thread may call any member at any time, except move and
/// destruction. In a forked child the destructor does nothing.
class Process {
public:
    /// Starts the program.
    ///
    /// Errors: LabError when the program is missing (naming the package) or cannot be started. That
    /// it starts and ends at once is no error here; see alive() and log_tail().
    explicit Process(ProcessOptions options);
    Process(Process&&) noexcept;
    Process& operator=(Process&&) noexcept;
    ~Process();

    [[nodiscard]] pid_t pid() const noexcept;

    /// Whether the program has not ended; a paused one is alive.
    [[nodiscard]] bool alive();

    [[nodiscard]] ProcessState state();

    /// The family at this moment, the program itself first; empty when it has ended.
    [[nodiscard]] std::vector<pid_t> family();

    /// Sends `signal` to the program alone. Does nothing when it has ended.
    void signal(int signal);

    /// Kills the whole family (SIGKILL) and waits for its end. Does nothing when it has ended.
    /// Errors: LabError when it is not gone within default_cap.
    void kill();

    /// Asks the program to end (SIGTERM), continues it if it was paused, and waits for `cap`; then
    /// kills. Returns how it ended.
    ExitStatus terminate(std::chrono::nanoseconds cap = default_cap);

    /// Stops the whole family (SIGSTOP) and returns when the kernel shows every thread as stopped.
    /// Errors: LabError when the program has ended or does not stop within `cap`.
    void pause(std::chrono::nanoseconds cap = default_cap);

    /// Continues the whole family (SIGCONT) and returns when the kernel shows no thread as stopped.
    /// Errors: LabError when the program has ended or does not continue within `cap`.
    void resume(std::chrono::nanoseconds cap = default_cap);

    /// Waits until the program has ended by itself; nullopt after `cap`.
    [[nodiscard]] std::optional<ExitStatus> wait(std::chrono::nanoseconds cap);

    /// The last `lines` lines of the log, for messages.
    [[nodiscard]] std::string log_tail(std::size_t lines = 20) const;

    /// The command as a person would type it, for messages.
    [[nodiscard]] std::string command_line() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
