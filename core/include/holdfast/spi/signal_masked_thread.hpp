// Threads that take no signals, since those are for the program. All threads of core and of the
// backends start here; tests/layering checks that.
#pragma once
#include <signal.h>

#include <thread>
#include <utility>

namespace holdfast::spi {

/// Starts a thread that blocks every signal except those of its own faults (SIGSEGV and the like),
/// which would otherwise end the program without its handlers. Programs that the thread starts
/// inherit the mask. Throws std::system_error, as std::thread does. Restores the caller's mask in
/// either case.
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
