// The guardian: a process beside holdfast that starts the command, and stops it with everything it
// has started before the lease can be somebody else's, also when holdfast itself is killed (its
// socket ends) or stopped (the shared deadline passes).
//
// holdfast is multi-threaded once a client is open, so the guardian is forked before that and stays
// single-threaded: it alone forks the command. It has a process group of its own in the caller's
// session and blocks every signal. (In a session of its own, the command's group would be orphaned,
// and ^Z ignored.) As a subreaper it adopts what the command leaves behind.
#pragma once
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deadline_file.hpp"
#include "unique_fd.hpp"

namespace holdfast::cli {

/// What the guardian needs to know before it is forked.
struct GuardianPlan {
    std::string path;               ///< the executable
    std::vector<std::string> argv;  ///< the command's
    std::vector<int> close_fds;     ///< ours, not for the command
    sigset_t mask{};                ///< the command's signal mask
    milliseconds grace{2000};       ///< between SIGTERM and SIGKILL
    milliseconds margin{500};       ///< all must be gone this long before the deadline
};

struct Report {
    enum Kind : std::int32_t {
        started,  ///< number: the process, which leads its group
        failed,   ///< number: errno of the execution
        stopped,  ///< number: the signal
        exited,   ///< number: as waitpid() gives it
        ending,   ///< number: an End; SIGTERM was sent
        gone      ///< nothing of the command is left; the guardian ends
    } kind;
    std::int32_t number;
    std::int64_t left_ms;  ///< ending: until SIGKILL
};

/// Why the guardian stops the command.
enum class End : std::int32_t { deadline, asked, orphaned, leftovers };

/// holdfast's side. Not thread-safe.
class Guardian {
public:
    /// Forks; call while the process has one thread. Throws std::system_error. The file must
    /// outlive this.
    Guardian(const GuardianPlan&, DeadlineFile&);
    /// Closes the socket: what still runs is stopped. Waits for the guardian.
    ~Guardian();
    Guardian(const Guardian&) = delete;
    Guardian& operator=(const Guardian&) = delete;

    /// Readable when a report has come, or the guardian is gone.
    int fd() const noexcept { return socket_.get(); }
    /// "NAME=value" each, put over the environment; `foreground`: the command takes the terminal.
    void go(const std::vector<std::string>& environment, bool foreground);
    void send_signal(int number);  ///< to the command's group
    void stop();                   ///< SIGTERM to all, SIGKILL after the grace
    void kill();                   ///< SIGKILL to all, now
    /// The next report; nothing when the guardian has ended. Blocks until there is one.
    std::optional<Report> receive();
    /// Kills the command without the guardian's help, for when it was itself killed.
    void kill_without();

    pid_t pid() const noexcept { return pid_; }
    pid_t command() const noexcept { return command_; }

private:
    UniqueFd socket_;
    pid_t pid_ = 0;
    pid_t command_ = 0;
};

}  // namespace holdfast::cli
