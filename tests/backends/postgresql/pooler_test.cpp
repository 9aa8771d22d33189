// T23: PgBouncer in transaction mode, where each statement may run in another session.
#include <future>
#include <sstream>
#include <thread>

#include "../sql/rig.hpp"
#include "trial.hpp"

using namespace postgresql_tests;

TEST_CASE("T23: behind PgBouncer in transaction mode locks exclude, renew, wait and break") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = lab::PostgresServer::start(
        {.config = {"log_statement = 'all'", "log_line_prefix = '%p %a '"}});
    const lab::PgBouncer pooler(own);
    const std::string through = "application_name=through";
    std::mutex mutex;
    std::string warned;
    const auto client = open(pooler.url(), through + "&ttl=3s", [&](const hf::Event& e) {
        const std::lock_guard hold_it(mutex);
        if (e.kind == hf::Event::Kind::warning) warned += e.text;
    });
    auto lease = hold(client, "kept");

    // Four clients of the pooler and one past it, on one name: more than the pooler has sessions.
    std::atomic<int> inside{0}, overlaps{0}, wrong{0};
    std::atomic<std::uint64_t> last{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 5; ++t)
        threads.emplace_back([&, t] {
            const auto mine =
                hf::Client::open(t == 0 ? own.url() : pooler.url() + "?" + through).value();
            const auto lock = mine.make_lock("N").value();
            for (int i = 0; i < 20; ++i) {
                auto got = lock->acquire({.wait = 60s});
                if (!got) {
                    ++wrong;
                    continue;
                }
                if (++inside != 1) ++overlaps;
                if (got->fencing_token().value <= last) ++overlaps;
                last = got->fencing_token().value;
                --inside;
                if (got->release() != ReleaseResult::released) ++wrong;
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(wrong == 0);
    CHECK(overlaps == 0);
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals >= renewals + 2; }, 10s, "renewals go on");
    CHECK(lease.valid());

    // Nobody is told of a release, so a waiter looks: at most a third of its ttl later.
    const auto waiter = open(pooler.url(), through);
    auto waiting = std::async(std::launch::async,
                              [&] { return lock_of(waiter, "kept")->acquire({.wait = 30s}); });
    lab::wait_until([&] { return waiter.stats().attempts >= 2; }, 10s, "it waits");
    const auto released = boot_clock::now();
    CHECK(lease.release() == ReleaseResult::released);
    auto next = waiting.get();
    REQUIRE(next.has_value());
    trial.within(std::chrono::milliseconds(ms_since(released)), std::chrono::milliseconds(1500),
                 "the grant, from the release");
    CHECK(client.break_lock("kept", {.if_token = next->fencing_token()}).has_value());
    CHECK(next->renew().error() == errc::revoked);

    const auto found = client.probe();
    REQUIRE(found.has_value());
    CHECK_FALSE(found->has(hf::Capability::notified));
    CHECK(found->has(hf::Capability::fencing));
    lab::wait_until(
        [&] {
            const std::lock_guard hold_it(mutex);
            return warned.find("pooler") != std::string::npos;
        },
        5s, "the operator is told");

    // Nothing of ours stays in the pooler's sessions: it was all done without.
    std::stringstream lines(own.log());
    std::size_t plain = 0, prepared = 0, listening = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(" through LOG:") == std::string::npos) continue;
        plain += line.find("execute <unnamed>: ") != std::string::npos;
        prepared += line.find("execute holdfast_") != std::string::npos;
        listening += line.find("LISTEN") != std::string::npos;
    }
    CHECK(plain > 100);
    CHECK(prepared == 0);
    CHECK(listening == 0);
}

TEST_CASE("T23: the pooler dies and comes back, the server behind it is replaced") {
    auto own = lab::PostgresServer::start();
    lab::PgBouncer pooler(own);
    const auto client = open(pooler.url(), "ttl=6s");
    auto lease = hold(client, "N");
    pooler.process().pause();
    CHECK(lease.renew().error() == errc::unavailable);
    pooler.process().resume();
    lab::wait_until([&] { return lease.renew().has_value(); }, 5s, "renewed again");
    own.restart();
    lab::wait_until([&] { return lease.renew().has_value(); }, 5s, "renewed again");
    CHECK(lease.valid());
    CHECK(lease.release() == ReleaseResult::released);
}

TEST_CASE("T23: PgBouncer in session mode is told apart as well") {
    auto own = lab::PostgresServer::start();
    const lab::PgBouncer pooler(own, "session", 20);
    const auto client = open(pooler.url());
    CHECK(hold(client, "N").valid());
    CHECK_FALSE(client.probe().value().has(hf::Capability::notified));
}

TEST_CASE("listen: waiters behind a pooler are notified past it, and a wrong server is told") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = lab::PostgresServer::start(), other = lab::PostgresServer::start();
    const lab::PgBouncer pooler(own);
    const auto listening = [](const lab::PostgresServer& s) {
        return s.value("SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'listen%'") == "1";
    };
    const auto past = [](const lab::PostgresServer& s) {
        return "ttl=60s&listen=127.0.0.1:" + std::to_string(s.port());
    };
    const auto client = open(pooler.url(), past(own)), waiter = open(pooler.url(), past(own));
    CHECK(client.probe().value().has(hf::Capability::notified));
    hf::milliseconds handed_over{0};
    hf::Lease next;
    for (int i = 0; i < 5; ++i) {
        auto lease = hold(client, "N");
        auto waiting = std::async(std::launch::async,
                                  [&] { return lock_of(waiter, "N")->acquire({.wait = 60s}); });
        lab::wait_until(
            [&] {
                return listening(own) && own.value(
                                             "SELECT line IS NOT NULL FROM holdfast_lease "
                                             "WHERE name = 'N'") == "t";
            },
            cap(10s), "it listens, and stands in line");
        const auto released = boot_clock::now();
        CHECK(lease.release() == ReleaseResult::released);
        auto got = waiting.get();
        REQUIRE(got.has_value());
        handed_over += hf::milliseconds(ms_since(released));
        if (i < 4)
            CHECK(got->release() == ReleaseResult::released);
        else
            next = std::move(*got);
    }
    // Looking once a second it would be half a second each.
    trial.within(handed_over, 1500ms, "five hand-offs");

    std::mutex mutex;
    std::string warned;
    const auto wrong = open(pooler.url(), past(other), [&](const hf::Event& e) {
        const std::lock_guard hold_it(mutex);
        if (e.kind == hf::Event::Kind::warning) warned += e.text;
    });
    CHECK_FALSE(wrong.probe().value().has(hf::Capability::notified));
    auto served =
        std::async(std::launch::async, [&] { return lock_of(wrong, "N")->acquire({.wait = 60s}); });
    lab::wait_until(
        [&] {
            const std::lock_guard hold_it(mutex);
            return warned.find("leads to another server") != std::string::npos;
        },
        cap(10s), "the operator is told");
    CHECK(next.release() == ReleaseResult::released);
    CHECK(served.get().has_value());  // it looks, as without listen
    hf::Diagnostics words;
    CHECK(hf::Client::open(pooler.url() + "?listen=a:b", {.diagnostics = &words}).error() ==
          errc::bad_config);
    CHECK_THAT(words.text(), ContainsSubstring("listen"));
}
