// Children of a fork, and threads that a fork finds inside.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace test_support {

/// The exit code of a child that runs `f`, or -1 when it had to be killed.
template <class F>
int in_child(F f) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        f();
        ::_exit(0);
    }
    int status = 0;
    if (holdfast::lab::reached([&] { return ::waitpid(child, &status, WNOHANG) == child; }))
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -1;
}

/// Threads that keep `f` going.
template <class F>
class Busy {
public:
    Busy(int threads, F f) {
        for (int n = 0; n < threads; ++n)
            threads_.emplace_back([this, f, n] {
                while (!done_)
                    f(n);
            });
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy() {
        done_ = true;
        for (auto& t : threads_)
            t.join();
    }

private:
    std::atomic<bool> done_{false};
    std::vector<std::thread> threads_;
};

}  // namespace test_support
