// A program's signals are its own: no thread of Holdfast's takes one.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <set>

#include "../support/catch.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;

namespace {

std::set<std::string> threads() {
    std::set<std::string> out;
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc/self/task"), &::closedir);
    while (const dirent* entry = ::readdir(dir.get()))
        if (entry->d_name[0] != '.') out.insert(entry->d_name);
    return out;
}

/// The signals that a thread blocks, bit n-1 for signal n.
std::uint64_t blocked(const std::string& thread) {
    std::ifstream status("/proc/self/task/" + thread + "/status");
    std::string line;
    while (std::getline(status, line))
        if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
    return 0;
}

std::string name_of(const std::string& thread) {
    std::ifstream in("/proc/self/task/" + thread + "/comm");
    std::string name;
    std::getline(in, name);
    return name;
}

bool has(std::uint64_t set, int signal) {
    return (set >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

}  // namespace

TEST_CASE("the client's threads leave signals to the program", "[core][native]") {
    // Each of them, asked from inside: other threads of this process are not Holdfast's.
    std::atomic<std::uint64_t> deliverer{0};
    const auto client =
        hf::Client::open(
            "memory:",
            {.events = [&](const hf::Event&) { deliverer = blocked(std::to_string(::gettid())); }})
            .value();
    const auto lease = client.make_lock("signals").value()->acquire().value();
    REQUIRE(holdfast::lab::reached([&] { return deliverer != 0; }));
    std::vector<std::uint64_t> sets;
    // A thread that has just started has yet to take its name.
    CHECK(holdfast::lab::reached([&] {
        sets = {deliverer};
        for (const std::string& thread : threads())
            if (const auto set = blocked(thread); name_of(thread) == "holdfast" && set != 0)
                sets.push_back(set);
        return sets.size() >= 2;  // the engine's as well
    }));
    for (const auto set : sets) {
        for (const int s : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD, SIGUSR1, SIGUSR2, SIGALRM,
                            SIGWINCH, SIGTSTP, SIGPIPE, SIGRTMIN})
            CHECK(has(set, s));
        // A fault of the thread's own: blocked, it would end the program without its handler.
        for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
            CHECK_FALSE(has(set, s));
    }
}

TEST_CASE("a program that opens a client first and then waits for a signal gets it",
          "[core][fork]") {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const auto client = hf::Client::open("memory:").value();
        if (!client.probe()) ::_exit(2);  // the engine's thread runs
        sigset_t set;
        ::sigemptyset(&set);
        ::sigaddset(&set, SIGUSR1);
        ::pthread_sigmask(SIG_BLOCK, &set, nullptr);  // in this thread only
        ::kill(::getpid(), SIGUSR1);
        int number = 0;
        ::sigwait(&set, &number);
        ::_exit(number == SIGUSR1 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
