// The terminal under job control: which group has the foreground, and stopping together with the
// command.
#pragma once
#include <sys/types.h>
#include <termios.h>

namespace holdfast::cli {

/// Only for the main thread, with SIGTTOU and SIGTSTP blocked.
class Terminal {
public:
    Terminal();
    /// True when the command should have the foreground from its start: standard input is our
    /// terminal, we have it now, and no other member of a pipeline shares our job.
    bool hand_over_at_start() const;
    /// Standard input is a terminal whose foreground we have.
    bool ours() const;
    /// The command took the foreground by itself (tcsetpgrp before its exec).
    void handed_over() { given_ = true; }
    void give(pid_t group);
    /// Takes the foreground back if the command had it; `restore` the modes after a crash of it.
    void take_back(bool restore);
    /// Stops this job, as ^Z does; returns when it is continued.
    static void stop_self();
    bool given() const { return given_; }

private:
    bool tty_ = false;
    bool given_ = false;
    bool modes_known_ = false;
    termios modes_{};
};

}  // namespace holdfast::cli
