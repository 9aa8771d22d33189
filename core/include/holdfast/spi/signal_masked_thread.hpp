// A thread that takes no signal: those are for the program's own. Every thread of core and of the
// backends starts here; tests/layering looks.
#pragma once
#include <signal.h>

#include <thread>
#include <utility>

namespace holdfast::spi {

/// Starts a thread on which every signal is blocked but those of its own faults (SIGSEGV and its
/// like), which would else end the program past its handlers. A program that such a thread starts
/// inherits the mask. Throws std::system_error, as std::thread does; the caller's own mask is as it
/// was in either case.
template <class F>
std::thread signal_masked_thread(F&& main) {
    struct Quiet {
        sigset_t before{};
        Quiet() {
            sigset_t all;
            sigfillset(&all);
            for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
                sigdelset(&all, fault);
            ::pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        ~Quiet() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        Quiet(const Quiet&) = delete;
        Quiet& operator=(const Quiet&) = delete;
    };
    const Quiet quiet;
    return std::thread(std::forward<F>(main));
}

}  // namespace holdfast::spi
