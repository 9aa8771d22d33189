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
#include "process_tree.hpp"
#include "refusals.hpp"
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
        unseen,   ///< it waits for processes that this user may not see
        gone      ///< nothing of the command is left; the guardian ends
    } kind;
    std::int32_t number;
    std::int64_t left_ms;  ///< ending: until SIGKILL
};

/// Why the guardian stops the command.
enum class End : std::int32_t { deadline, asked, orphaned, leftovers };

/// holdfast's side. Not thread-safe. No call waits for a guardian that does not answer.
class Guardian {
public:
    /// Forks. `plan` and `deadline` outlive it. Throws std::system_error.
    Guardian(const GuardianPlan& plan, DeadlineFile& deadline);
    /// Whatever still runs is stopped, as if holdfast had been killed; returns when nothing does.
    ~Guardian();
    Guardian(const Guardian&) = delete;
    Guardian& operator=(const Guardian&) = delete;

    /// Readable when a report has come, or the guardian is gone.
    int fd() const noexcept { return socket_.get(); }
    /// "NAME=value" each, put over the environment; `foreground`: the command takes the terminal.
    /// False when the guardian is gone: nothing was started.
    bool go(const std::vector<std::string>& environment, bool foreground);
    /// To the command's group. 0 signals nothing: the guardian looks at the deadline again.
    void send_signal(int number);
    void stop();  ///< SIGTERM to all, SIGKILL after the grace
    void kill();  ///< SIGKILL to all, now
    /// The next report; nothing when the guardian has ended. Blocks until there is one.
    std::optional<Report> receive();

    enum class Left : unsigned char { nothing, some, refused };
    /// Signals everything of the command without the guardian's help. `refused`: what is left
    /// belongs to other users; `complain` of that.
    Left signal_without(int number, bool complain);
    /// Kills everything of the command, and the guardian, which does not answer or was itself
    /// killed. Leaves what it may not signal or see, and complains of it; then it returns false.
    bool kill_without();

    pid_t pid() const noexcept { return pid_; }
    pid_t command() const noexcept { return command_; }

private:
    std::vector<Process> family() const;
    bool ends_by(boot_clock::time_point) const;
    /// By itself, when nothing was left; after its end.
    bool ended_well() const;
    void kill_guardian();
    void kill_for_certain() noexcept;

    const GuardianPlan& plan_;
    DeadlineFile& deadline_;
    UniqueFd socket_;
    UniqueFd handle_;  ///< pidfd of the guardian
    pid_t pid_ = 0;
    pid_t command_ = 0;
    bool going_ = false;  ///< the command was started, and not everything of it has ended
    Refusals refusals_;
    std::vector<Process> inherited_;  ///< children from before our exec: no business of ours
};

}  // namespace holdfast::cli
