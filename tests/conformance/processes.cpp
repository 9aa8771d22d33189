// Several processes on one name, watched from outside.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <latch>
#include <thread>

#include "checker/check.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "suite.hpp"

using namespace suite;

namespace {

/// What the workers of one run did to a store that does not lock.
struct Witnessed {
    long long counter = 0;  ///< increments that survived
    long long expected = 0;
    long long overlaps = 0;  ///< times the witness file was there already
    long long killed = 0;
    hf::bench::history::Verdict told;  ///< by the workers themselves, each in a file of its own
};

/// Runs `n` workers, `each` rounds, on one name; a worker is tests/conformance/worker.cpp.
Witnessed witness(int n, int each, bool locked, bool kill_some) {
    const auto name = fresh_name("witness");
    lab::TempDir dir;
    auto store = lab::RedisServer::start();
    std::vector<lab::Process> workers;
    for (int i = 0; i < n; ++i) {
        auto o = worker_in(locked ? "lock" : "no-lock", backend().url("ttl=5s&request_timeout=3s"),
                           name, dir, std::to_string(store.port()),
                           // The one that is killed must not be through before.
                           std::to_string(kill_some && i == 0 ? 1'000'000 : each));
        o.log = dir.path() / ("worker-" + std::to_string(i));
        workers.emplace_back(o);
    }
    lab::wait_until(
        [&] {
            return store.cli({"GET", "ready"}).text == std::to_string(n);
        },
        cap(30s), "all workers are ready");
    store.cli({"SET", "go", "1"});
    Witnessed out;
    if (kill_some) {
        // The first is killed holding or waiting, whichever it is; the others go on after the ttl.
        lab::wait_until(
            [&] {
                const auto counter = store.cli({"GET", "counter"});
                return !counter.is_nil() && std::stoll(counter.text) > 5;
            },
            cap(30s), "work goes on");
        workers[0].kill();
        out.killed = 1;
    }
    for (auto& w : workers) {
        const auto ended = w.wait(cap(120s));
        if (!ended) throw std::runtime_error("a worker hangs: " + w.log_tail());
        if (!ended->by_signal && ended->code != 0)
            throw std::runtime_error("a worker failed: " + w.log_tail());
    }
    const auto number = [&](const char* key) {
        const auto r = store.cli({"GET", key});
        return r.is_nil() ? 0 : std::stoll(r.text);
    };
    out.counter = number("counter");
    out.expected = number("done");
    out.overlaps = number("overlaps");
    out.told = hf::bench::history::check_folder(dir.path());
    return out;
}

/// The same witness for threads of one process.
Witnessed witness_threads(bool locked) {
    const auto client = open();
    const auto name = fresh_name("threads");
    lab::TempDir dir;
    const auto file = dir.path() / "witness";
    std::atomic<int> overlaps{0};
    std::atomic<long long> counter{0};  // read and written in two steps
    std::vector<std::thread> threads;
    std::latch together(4);
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            const auto lock = *client.make_lock(name);
            // Or one might be through before the next one is there.
            together.arrive_and_wait();
            for (int i = 0; i < 100; ++i) {
                hf::result<hf::Lease> lease = hf::Lease();
                if (locked) lease = lock->acquire();
                if (!lease || std::filesystem::exists(file)) ++overlaps;
                const long long n = counter;
                std::ofstream(file) << i;
                // Threads that share one busy processor would hardly meet otherwise.
                std::this_thread::yield();
                counter = n + 1;
                std::filesystem::remove(file);
                lease->release();
            }
        });
    for (auto& t : threads)
        t.join();
    Witnessed out;
    out.counter = counter;
    out.expected = 400;
    out.overlaps = overlaps;
    return out;
}

}  // namespace

TEST_CASE("exclusion, witnessed from outside, and the witness can complain", "[exclusion]") {
    if (!backend().shared_between_processes()) {
        const auto locked = witness_threads(true);
        CHECK(locked.overlaps == 0);
        CHECK(locked.counter == 400);
        const auto control = witness_threads(false);
        CHECK((control.overlaps > 0 || control.counter < control.expected));
        return;
    }
    const auto locked = witness(4, 60, true, false);
    CHECK(locked.overlaps == 0);
    CHECK(locked.counter == 240);
    CHECK(locked.expected == 240);
    {
        INFO(locked.told.text());
        CHECK(locked.told.clean());
        CHECK(locked.told.figures.granted == 240);
    }
    const auto control = witness(4, 250, false, false);
    std::cout << backend().name() << ": without locks " << control.overlaps << " overlaps, "
              << control.expected - control.counter << " of " << control.expected
              << " updates lost\n";
    CHECK((control.overlaps > 0 || control.counter < control.expected));
    CHECK(control.told.count(hf::bench::history::Trouble::overlap) > 0);
}

TEST_CASE("a holder that is killed frees the lock by its ttl, and work goes on", "[exclusion]") {
    if (!backend().shared_between_processes()) return;
    const auto after = witness(4, 40, true, true);
    CHECK(after.overlaps == 0);
    CHECK(after.counter == after.expected);
    CHECK(after.killed == 1);
    CHECK(after.counter >= 120);
    INFO(after.told.text());
    CHECK(after.told.clean());
    CHECK(after.told.figures.granted >= 120);
}

TEST_CASE("T26: in the child of a fork every handle is dead, and the parent's lease lives",
          "[T26]") {
    const auto client = open("ttl=3s");
    const auto name = fresh_name("fork");
    const auto lock = lock_of(client, name);
    auto lease = hold(*lock);
    const ::pid_t child = ::fork();
    if (child == 0) {
        int wrong = 0;
        if (lock->try_acquire().error() != errc::forked) wrong |= 1;
        if (lease.valid()) wrong |= 2;
        if (lease.renew().error() != errc::forked) wrong |= 4;
        if (lease.release() != hf::ReleaseResult::unreachable) wrong |= 8;
        if (client.inspect(name).error() != errc::forked) wrong |= 16;
        {
            const hf::Client copy = client;
            const auto moved = std::move(lease);
        }
        ::_exit(wrong);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    // Made past the C library, none of whose handlers runs then.
    const auto bare = static_cast<::pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (bare == 0) ::_exit(lease.valid() ? 1 : 0);
    REQUIRE(::waitpid(bare, &status, 0) == bare);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals >= renewals + 2; }, 10s, "renewals go on");
    CHECK(lease.valid());
    CHECK(lease.release() == hf::ReleaseResult::released);
    require_clean(name);
}

TEST_CASE("T16: the client's wall clock jumps an hour either way, and nothing happens", "[T16]") {
    const auto name = fresh_name("clock");
    lab::TempDir dir;
    for (const char* jump : {"3600", "-3600"}) {
        auto o = worker_in("clock",
                           backend().shared_between_processes()
                               ? backend().url("ttl=2s&request_timeout=3s")
                               : "memory:",
                           name, dir, jump);
        lab::WallClock clock(dir.path() / "offset");
        clock.set(0ms);
        o.environment = clock.environment();
        o.environment.emplace_back("ASAN_OPTIONS", "verify_asan_link_order=0");
        lab::Process worker(o);
        const auto ended = worker.wait(cap(30s));
        INFO(worker.log_tail());
        REQUIRE(ended.has_value());
        CHECK((!ended->by_signal && ended->code == 0));
    }
    require_clean(name);
}
