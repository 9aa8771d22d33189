// The time in which the command runs: renewals, signals, the terminal, and the loss of the lock.
#pragma once
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "background.hpp"
#include "guardian.hpp"
#include "holdfast/lease.hpp"
#include "run_options.hpp"
#include "signals.hpp"
#include "status_fd.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

struct CommandEnd {
    int exit = 0;
    Outcome outcome = Outcome::done;
};

class GuardedCommand {
public:
    GuardedCommand(const RunOptions&, const Timing&, Lease&, DeadlineFile&, Guardian&, Signals&,
                   StatusFd&);
    /// Starts the command and returns when nothing of it is left and min_hold has passed.
    CommandEnd run(const std::vector<std::string>& environment);

private:
    void step(bool guarding);
    void follow_lease();
    void on_signals();
    void on_signal(int number);
    bool on_report();
    void on_stopped(int number);
    void on_ending(End why, milliseconds left);
    void on_lost();
    void say_lost(std::string_view then);
    std::string why_lost() const;
    void hold_on();
    CommandEnd verdict() const;

    const RunOptions& options_;
    const Timing times_;
    Lease& lease_;
    DeadlineFile& file_;
    Guardian& guardian_;
    Signals& signals_;
    StatusFd& status_;
    Terminal terminal_;
    Bell lost_bell_;
    const boot_clock::time_point since_ = boot_clock::now();
    boot_clock::time_point until_{};
    boot_clock::time_point last_end_signal_{};
    bool at_risk_ = false;
    bool lost_ = false;
    bool lost_running_ = false;  ///< before the command had ended
    bool said_lost_ = false;
    bool running_ = false;
    bool guardian_died_ = false;
    bool impatient_ = false;     ///< min_hold is cut short by a signal
    std::optional<int> failed_;  ///< errno of the execution
    std::optional<int> wait_status_;
};

}  // namespace holdfast::cli
