// Foreground groups and stops.
#include "terminal.hpp"

#include <unistd.h>

#include <csignal>

#include "process_tree.hpp"

namespace holdfast::cli {
namespace {

/// True when another process that our parent started is in our process group: a pipeline.
bool in_pipeline() {
    for (const Process& p : processes()) {
        if (p.parent == ::getppid() && p.group == ::getpgrp() && p.pid != ::getpid()) return true;
    }
    return false;
}

}  // namespace

Terminal::Terminal() : tty_(::isatty(STDIN_FILENO) == 1) {
    modes_known_ = tty_ && ::tcgetattr(STDIN_FILENO, &modes_) == 0;
}

bool Terminal::ours() const {
    return tty_ && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

bool Terminal::hand_over_at_start() const {
    return ours() && !in_pipeline();
}

void Terminal::give(pid_t group) {
    if (ours() && ::tcsetpgrp(STDIN_FILENO, group) == 0) given_ = true;
}

void Terminal::take_back(bool restore) {
    if (!given_) return;
    given_ = false;
    ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
    if (restore && modes_known_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes_);
}

void Terminal::stop_self() {
    sigset_t stop, before;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTSTP);
    // The whole job stops, so that the shell sees it stopped. In an orphaned group, where nobody
    // could continue it, the kernel drops the signal and this returns at once.
    ::kill(0, SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &stop, &before);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace holdfast::cli
