// The pool of threads for users' code, where the machine gives it none.
#include "callback_pool.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/catch.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace hf = holdfast;

namespace {

constexpr uid_t nobody = 65534;

/// Runs `f` in a process that gets no further thread until it calls the function it is given.
template <class F>
int without_threads(F f) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // The limit does not count for root.
        if (::getuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) ::_exit(100);
        rlimit before{};
        ::getrlimit(RLIMIT_NPROC, &before);
        const rlimit none{1, before.rlim_max};
        if (::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(101);
        ::_exit(f([&] { ::setrlimit(RLIMIT_NPROC, &before); }));
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("a job that found no thread runs when there is one", "[core][fork]") {
    const int code = without_threads([](auto allow_threads) {
        std::atomic<int> looks{0}, ran{0};
        hf::CallbackPool pool([&] { ++looks; });
        pool.post([&] { ++ran; });
        if (ran != 0) return 1;    // never inside post()
        if (looks != 1) return 2;  // somebody has to try again
        pool.check();
        if (looks != 2) return 3;
        allow_threads();
        pool.check();
        return holdfast::lab::reached([&] { return ran == 1; }) ? 0 : 4;
    });
    CHECK(code == 0);
}

TEST_CASE("a job that never found a thread runs where the pool is stopped", "[core][fork]") {
    const int code = without_threads([](auto) {
        int ran = 0;
        {
            hf::CallbackPool pool([] {});
            pool.post([&] { ++ran; });
            pool.post([&] { ++ran; });
            pool.stop(hf::milliseconds(0));
        }
        return ran == 2 ? 0 : 1;
    });
    CHECK(code == 0);
}
