// A thread that takes no signal: those are for the program's own.
#pragma once
#include <signal.h>

#include <thread>
#include <utility>

namespace holdfast::spi {

/// Starts a thread on which every signal is blocked. Throws std::system_error, as std::thread does;
/// the caller's own mask is as it was in either case.
template <class F>
std::thread quiet_thread(F&& main) {
    struct Quiet {
        sigset_t before{};
        Quiet() {
            sigset_t all;
            sigfillset(&all);
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
