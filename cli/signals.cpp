// The signals that holdfast forwards.
#include "signals.hpp"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <initializer_list>

namespace holdfast::cli {

Signals::Signals() {
    sigset_t caught;
    ::sigemptyset(&caught);
    for (const int n :
         {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP}) {
        struct sigaction now {};
        // nohup: what is ignored stays ignored, here and in the command.
        if (::sigaction(n, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
        ::sigaddset(&caught, n);
    }
    sigset_t blocked = caught;
    ::sigaddset(&blocked, SIGPIPE);
    ::sigaddset(&blocked, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &original_);
    fd_ = checked_fd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

std::optional<int> Signals::next() {
    signalfd_siginfo info;
    if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {};
    return static_cast<int>(info.ssi_signo);
}

void die_of(int number, bool job) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) return;
    ::prctl(PR_SET_DUMPABLE, 0);  // the core that SIGQUIT asks for is the command's
    std::signal(number, SIG_DFL);
    ::kill(job ? 0 : ::getpid(), number);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, number);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

}  // namespace holdfast::cli
