// Several processes and several clients on one file.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <set>
#include <sstream>
#include <thread>

#include "fixture.hpp"
#include "fork.hpp"
#include "trial.hpp"
#include "worker.hpp"

namespace holdfast::sqlite::test {
namespace {

using test_support::Busy;
using test_support::in_child;

TEST_CASE("four processes: one holder at a time, and tokens that only grow", "[native]") {
    const File file;
    constexpr int processes = 4, times = 500;
    const std::string witness = file.dir / "witness";
    // Nobody made the file before: all four make it at once.
    std::vector<lab::Process> running;
    for (int i = 0; i < processes; ++i)
        running.push_back(
            file.helper({"count", file.url, "shared name", std::to_string(times), witness},
                        "log" + std::to_string(i)));
    std::set<unsigned long long> tokens;
    for (int i = 0; i < processes; ++i) {
        const auto status = running[static_cast<std::size_t>(i)].wait(120s);
        const std::string log = file.said("log" + std::to_string(i));
        INFO(log.substr(log.size() > 200 ? log.size() - 200 : 0));
        REQUIRE(status.has_value());
        CHECK(status->code == 0);
        std::istringstream lines(log);
        unsigned long long token = 0, last = 0;
        while (lines >> token) {
            CHECK(token > last);
            last = token;
            tokens.insert(token);
        }
    }
    CHECK(tokens.size() == processes * times);
    CHECK(std::to_string(*tokens.rbegin()) == file.sql("SELECT token FROM holdfast_lease"));
    CHECK(file.sql("SELECT owner IS NULL AND mark = 1 FROM holdfast_lease") == "1");
    CHECK(file.sql("PRAGMA integrity_check") == "ok");
}

TEST_CASE("the witness notices when nobody excludes", "[native]") {
    const File file;
    constexpr int processes = 4;
    const std::string witness = file.dir / "witness";
    std::vector<lab::Process> running;
    for (int i = 0; i < processes; ++i)  // the control run: everybody has a name of its own
        running.push_back(
            file.helper({"count", file.url, "name " + std::to_string(i), "2000", witness},
                        "log" + std::to_string(i)));
    CHECK(lab::reached(
        [&] {
            for (int i = 0; i < processes; ++i)
                if (file.said("log" + std::to_string(i)).find("two holders") != std::string::npos)
                    return true;
            return false;
        },
        60s));
}

TEST_CASE("many connections make the tables at once") {
    const File file;
    std::vector<std::thread> threads;
    std::atomic<int> ready{0}, granted{0};
    for (int i = 0; i < 12; ++i)
        threads.emplace_back([&, i] {
            Connection c(file.database());
            const auto use = c.use();
            ++ready;
            while (ready < 12)
                std::this_thread::yield();
            const auto failed = c.open(boot_clock::now() + 10s);
            if (!failed) ++granted;
            if (failed) UNSCOPED_INFO(i << ": " << failed.text());
        });
    for (auto& t : threads)
        t.join();
    CHECK(granted == 12);
}

TEST_CASE("a release reaches the waiters of another client and of another process soon",
          "[native]") {
    test_support::Trial& trial = test_support::this_trial();
    const File file;
    auto holder = Client::open(file.url).value();
    auto waiter = Client::open(file.url).value();
    auto held = holder.make_lock("a").value()->acquire({.wait = 2s}).value();
    std::atomic<bool> got{false};
    boot_clock::time_point when;
    std::thread waits([&] {
        auto lease = waiter.make_lock("a").value()->acquire({.wait = 20s});
        when = boot_clock::now();
        got = lease.has_value();
    });
    lab::wait_until([&] { return waiter.stats().waiting == 1; }, 5s, "it waits");
    REQUIRE(lab::stays_true([&] { return !got; }, 500ms));
    const auto let_go = boot_clock::now();
    CHECK(held.release() == ReleaseResult::released);
    waits.join();
    CHECK(got);
    trial.within(when - let_go, 200ms, "the grant, from the release");

    const auto log = [&] { return file.said("other"); };
    held = holder.make_lock("a").value()->acquire({.wait = 2s}).value();
    auto other = file.helper({"hold", file.url, "a"}, "other");
    auto watched =
        holder.make_lock("b").value()->acquire({.wait = 2s});  // the file is used meanwhile
    REQUIRE(lab::stays_true([&] { return log().empty(); }, 500ms));
    CHECK(held.release() == ReleaseResult::released);
    const bool soon = lab::reached([&] { return log().starts_with("held"); }, 500ms);
    trial.holds(soon, 500ms, "it is held after the release");
}

TEST_CASE("waiters of one client cost few statements while nothing happens") {
    const File file;
    auto holder = Client::open(file.url).value();
    auto waiter = Client::open(file.url).value();
    auto held = holder.make_lock("a").value()->acquire({.wait = 2s}).value();
    constexpr int waiters = 100;
    auto lock = waiter.make_lock("a").value();
    std::atomic<int> ended{0};
    for (int i = 0; i < waiters; ++i)
        lock->async_acquire({.wait = 60s}, [&](error_code, Lease) { ++ended; });
    lab::wait_until([&] { return waiter.stats().attempts >= waiters; }, 10s, "all have looked");
    const auto before = waiter.stats().requests;
    REQUIRE(lab::stays_true([&] { return ended == 0; }, 2s));
    const auto each = static_cast<double>(waiter.stats().requests - before) / waiters / 2;
    INFO(each << " statements per waiter and second");
    CHECK(each < 2);
    CHECK(held.release() == ReleaseResult::released);
    CHECK(lab::reached([&] { return ended == waiters; }, 30s));
    CHECK(
        lab::reached([&] { return file.sql("SELECT owner IS NULL FROM holdfast_lease") == "1"; }));
}

TEST_CASE("a cancelled wait leaves nothing") {
    const File file;
    auto client = Client::open(file.url).value();
    auto lock = client.make_lock("a").value();
    auto held = lock->acquire({.wait = 2s}).value();
    std::stop_source stop;
    std::thread ends([&] {
        lab::wait_until([&] { return client.stats().waiting == 1; }, 5s, "it waits");
        stop.request_stop();
    });
    const auto lease = lock->acquire({.wait = 20s}, stop.get_token());
    ends.join();
    REQUIRE(lease.has_error());
    CHECK(lease.error() == errc::cancelled);
    CHECK(held.release() == ReleaseResult::released);
    // An attempt that was under way may have been granted; close() waits until it is given back.
    client.close();
    CHECK(file.sql("SELECT owner IS NULL AND mark = 1 FROM holdfast_lease") == "1");
}

TEST_CASE("a child's own client has nothing of the parent's", "[fork]") {
    const File file;
    // No renewal: a thread of the client must not be inside SQLite at a fork.
    const auto client = Client::open(file.url + "?ttl=10m").value();
    const auto lease = client.make_lock("parent").value()->try_acquire().value();
    const Busy others(2, [](int) { kick_neighbours(FileId{}); });
    for (int n = 0; n < 50; ++n) {
        INFO("child " << n);
        REQUIRE(in_child([&] {
                    const auto own = Client::open(file.url).value();
                    const auto parents = own.make_lock("parent").value()->try_acquire();
                    if (parents.error() != errc::contended) ::_exit(1);
                    if (own.inspect("parent").value().holders.size() != 1) ::_exit(2);
                    if (!own.make_lock("child").value()->try_acquire()) ::_exit(3);
                }) == 0);
    }
    CHECK(lease.valid());
}

TEST_CASE("in a child of a parent that is inside SQLite, a client says so, and never hangs",
          "[fork]") {
    const File file;
    const auto client = Client::open(file.url).value();
    const Busy others(2, [&](int n) {
        const auto held = client.make_lock("busy/" + std::to_string(n)).value()->try_acquire();
    });
    for (int n = 0; n < 30; ++n) {
        INFO("child " << n);
        REQUIRE(in_child([&] {
                    const auto own = Client::open(file.url).value();
                    const auto held = own.make_lock("child").value()->try_acquire();
                    if (!held && held.error() != errc::unavailable) ::_exit(1);
                }) == 0);
    }
}

TEST_CASE("what a child's client holds outlasts the parent's client", "[fork]") {
    const File file;
    auto client = Client::open(file.url).value();
    auto before = client.make_lock("parent").value()->try_acquire().value();
    REQUIRE(before.release() == ReleaseResult::released);
    std::array<int, 2> held{}, closed{};
    REQUIRE((::pipe(held.data()) == 0 && ::pipe(closed.data()) == 0));
    std::thread closes([&] {
        char byte = 0;
        if (::read(held[0], &byte, 1) == 1) client.close();
        (void)!::write(closed[1], &byte, 1);
    });
    CHECK(in_child([&] {
              char byte = 0;
              const auto own = Client::open(file.url).value();
              auto lease = own.make_lock("child").value()->try_acquire().value();
              if (::write(held[1], &byte, 1) != 1 || ::read(closed[0], &byte, 1) != 1) ::_exit(1);
              if (!lease.renew()) ::_exit(2);
              if (lease.release() != ReleaseResult::released) ::_exit(3);
              if (!own.make_lock("child").value()->try_acquire()) ::_exit(4);
          }) == 0);
    ::close(held[1]);
    closes.join();
    for (const int end : {held[0], closed[0], closed[1]})
        ::close(end);
}

TEST_CASE("a child of fork disturbs nothing", "[native]") {
    const File file;
    auto client = Client::open(file.url).value();
    auto held = client.make_lock("a").value()->acquire({.wait = 2s}).value();
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        const bool forked = client.make_lock("b").error() == errc::forked ||
                            client.make_lock("b").value()->try_acquire().error() == errc::forked;
        ::_exit(forked ? 0 : 1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    CHECK(held.renew().has_value());
    CHECK(held.release() == ReleaseResult::released);
}

}  // namespace
}  // namespace holdfast::sqlite::test
