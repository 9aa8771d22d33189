// What a stall does to a trial, and to none that come after it.
#include "trial.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <type_traits>

#include "cap.hpp"
#include "catch.hpp"

using namespace std::chrono_literals;
using test_support::cap;
using test_support::Stalls;
using test_support::Trial;

// What a sanitizer may lengthen is no bound of a promise.
static_assert(!std::is_convertible_v<decltype(cap(1s)), Trial::milliseconds>);

namespace {

/// This process stands still for so long.
void stand_still(std::chrono::milliseconds time) {
    const ::pid_t me = ::getpid();
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::kill(me, SIGSTOP);
        ::poll(nullptr, 0, static_cast<int>(time.count()));
        ::kill(me, SIGCONT);
        ::_exit(0);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) != child) {
    }
}

}  // namespace

TEST_CASE("what stalls do to trials", "[native]") {
    // In a process of its own: whoever started this one may be told of a child that is stopped.
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::execl("/proc/self/exe", "trials", "[stalls]", nullptr);
        ::_exit(127);
    }
    int status = -1;
    while (::waitpid(child, &status, 0) != child) {
    }
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a stall voids the trial that it is in, and no later one", "[.][stalls]") {
    int trials = 0;
    for (Trial trial; trial.again();) {
        const auto start = std::chrono::steady_clock::now();
        if (++trials <= 2) stand_still(400ms);
        const bool proven =
            trial.within(std::chrono::steady_clock::now() - start, 200ms, "nothing");
        CHECK(proven == (trials > 2));
    }
    CHECK(trials == 3);
}

TEST_CASE("a trial is made again three times, and not once more", "[.][stalls]") {
    int trials = 0;
    bool proven = false;
    for (Trial trial; trial.again();)
        if (++trials <= 3) {
            stand_still(100ms);
            proven = trial.holds(false, 200ms, "something");
        } else {
            proven = trial.holds(true, 200ms, "something");
        }
    CHECK(trials == 4);
    CHECK(proven);
}

TEST_CASE("a stall is seen by who watches then, and not by who comes later", "[.][stalls]") {
    const Stalls early;
    stand_still(300ms);
    CHECK(early.longest() >= 200);
    for (Trial trial; trial.again();) {  // the machine may stand still by itself
        const Stalls later;
        trial.holds(later.longest() < 100, 200ms, "no stall is carried over");
    }
}

TEST_CASE("a test is made again from its beginning while its trial is void", "[.][stalls]") {
    static int runs = 0;
    Trial& trial = test_support::this_trial();
    const auto start = std::chrono::steady_clock::now();
    if (++runs == 1) stand_still(400ms);
    trial.within(std::chrono::steady_clock::now() - start, 200ms, "nothing");
    if (runs == 1) return;
    CHECK(runs >= 2);
}
