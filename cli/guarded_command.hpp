// The time in which the command runs: renewals, signals, the terminal, and the loss of the lock.
#pragma once
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "background.hpp"
#include "guardian.hpp"
#include "holdfast/lease_set.hpp"
#include "run_options.hpp"
#include "signals.hpp"
#include "status_fd.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

struct CommandEnd {
    int exit = 0;
    Outcome outcome = Outcome::done;
    int interrupted = 0;  ///< SIGINT or SIGQUIT, when the command died of it
    bool job = false;     ///< the terminal sent it, to the command alone
};

class GuardedCommand {
public:
    GuardedCommand(const RunOptions&, const Timing&, LeaseSet&, DeadlineFile&, Guardian&, Signals&,
                   StatusFd&);
    /// Starts the command and returns when nothing of it is left and min_hold has passed.
    CommandEnd run(const std::vector<std::string>& environment);

private:
    static constexpr boot_clock::time_point never = boot_clock::time_point::max();

    void step(bool guarding);
    void follow_lease();
    void on_signals();
    void on_signal(int number);
    bool on_report();
    void on_stopped(int number);
    void on_ending(End why, milliseconds left);
    void on_lost();
    void on_asked();
    void oversee();
    boot_clock::time_point stop_due() const;
    boot_clock::time_point kill_due() const;
    int patience() const;
    void lose();
    void say_ended(std::string_view then);
    void say_lost(std::string_view then);
    /// The one that was lost, or all of them.
    std::string name_lost() const;
    std::string why_lost() const;
    /// Why the last renewal or release failed, of the first lock where one did.
    RequestError last_error() const;
    void hold_on();
    int interrupted_by() const;
    CommandEnd verdict() const;

    const RunOptions& options_;
    const Timing times_;
    LeaseSet& set_;
    DeadlineFile& file_;
    Guardian& guardian_;
    Signals& signals_;
    StatusFd& status_;
    Terminal terminal_;
    Bell lost_bell_, asked_bell_;
    const boot_clock::time_point since_ = boot_clock::now();
    boot_clock::time_point until_{};
    boot_clock::time_point last_end_signal_{};
    // When the guardian was told to stop the command, and by when it has to kill it; the deadline
    // may come before both.
    boot_clock::time_point stop_at_ = never, kill_at_ = never;
    boot_clock::time_point look_at_{};  ///< not before: what is left may not be signalled
    bool at_risk_ = false;
    bool lost_ = false;
    bool lost_running_ = false;  ///< before the command had ended
    bool said_lost_ = false;
    bool running_ = false;
    bool ending_ = false;         ///< SIGTERM was sent, by the guardian or without it
    bool guardian_ends_ = false;  ///< by the guardian
    bool guardian_died_ = false;
    bool unseen_ = false;        ///< what is left cannot be seen, and the guardian waits for it
    bool not_started_ = false;   ///< it was too late for that
    bool had_terminal_ = false;  ///< when it ended
    std::set<int> passed_on_;    ///< signals that came to holdfast
    bool impatient_ = false;     ///< min_hold is cut short by a signal
    std::optional<int> failed_;  ///< errno of the execution
    std::optional<int> wait_status_;
};

}  // namespace holdfast::cli
