// The thread that talks to the server for the engine: what it answers when it fails in the middle,
// and in which order.
#include <boost/asio/co_spawn.hpp>
#include <future>

#include "../sql/direct.hpp"
#include "../sql/events.hpp"
#include "worker.hpp"

using namespace postgresql_tests;
using sql_tests::Events;

namespace {

struct Working {
    Working() : worker(std::make_shared<pg::Worker>(direct.shared, direct.io.get_executor())) {}
    ~Working() {
        direct.shared->watchdog->close();
        worker->close();
    }
    std::shared_ptr<pg::Job> job() {
        auto made = std::make_shared<pg::Job>(direct.io.get_executor());
        made->deadline = boot_clock::now() + 20s;
        return made;
    }
    /// Hands it over; `then` is told whether it was answered.
    void start(const std::shared_ptr<pg::Job>& job, std::function<void(bool)> then) {
        boost::asio::co_spawn(direct.io, worker->run(job),
                              [then](const std::exception_ptr&, bool answered) { then(answered); });
    }
    Direct direct{server().url()};
    std::shared_ptr<pg::Worker> worker;
};

}  // namespace

TEST_CASE("what a worker cannot do for lack of memory is in doubt, and no withdrawal is well") {
    Events events;
    events.no_memory = true;
    Working w;
    w.direct.shared->reports.report_to(&events);  // of fsync = off, as it connects
    auto job = w.job();
    for (const auto kind : {pg::Step::Kind::withdraw, pg::Step::Kind::attempt,
                            pg::Step::Kind::renew, pg::Step::Kind::release})
        job->add(w.direct.step(kind, fresh("memory"), owner('M')));
    bool answered = false;
    w.start(job, [&](bool yes) { answered = yes; });
    w.direct.io.run();
    REQUIRE(answered);
    REQUIRE(events.warnings > 0);
    CHECK(job->steps[0].error == errc::unavailable);
    CHECK(std::holds_alternative<hf::spi::Attempt::NoAnswer>(job->steps[1].outcome));
    CHECK(job->steps[2].error == errc::unavailable);
    CHECK(job->steps[2].detail == "out of memory");
    CHECK(job->steps[3].released == ReleaseResult::unreachable);
    w.direct.shared->reports.report_to(nullptr);
}

TEST_CASE("nobody's answer waits behind a question") {
    Working w;
    std::atomic<bool> both_there{false}, granted{false};
    auto first = w.job(), attempt = w.job(), question = w.job();
    first->ask = [&](pg::Connection&) { CHECK(lab::reached([&] { return both_there.load(); })); };
    attempt->add(w.direct.step(pg::Step::Kind::attempt, fresh("before"), owner('Q')));
    bool in_time = false;
    question->ask = [&](pg::Connection&) {
        in_time = lab::reached([&] { return granted.load(); }, 5s);
    };
    int answered = 0;
    const auto count = [&](bool yes) { answered += yes ? 1 : 0; };
    w.start(first, count);
    w.start(attempt, [&](bool yes) { granted = yes; });
    w.start(question, [&](bool yes) { count(yes); });
    boost::asio::post(w.direct.io, [&] { both_there = true; });
    w.direct.io.run();
    CHECK(answered == 2);
    CHECK(in_time);
}

TEST_CASE("one connection, where the server has no more, keeps and releases what it was granted") {
    auto own = lab::PostgresServer::start();
    const auto name = fresh("last");
    hold(open(own.url()), name).release();
    own.sql("ALTER ROLE holdfast CONNECTION LIMIT 1");
    const auto client = open(own.url(), "ttl=6s");
    std::promise<hf::Lease> got;
    const auto lock = lock_of(client, name);
    // The first client's connections end in the server's own time.
    lock->async_acquire({.wait = 10s},
                        [&](hf::error_code, hf::Lease l) { got.set_value(std::move(l)); });
    auto lease = got.get_future().get();
    REQUIRE(lease.valid());
    CHECK(own.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'holdfast'") == "1");
    CHECK(lease.renew().has_value());
    CHECK(lease.release() == ReleaseResult::released);
    CHECK(own.value("SELECT owner IS NULL FROM holdfast_lease WHERE name = '" + name + "'") == "t");
}

TEST_CASE("who does not listen any more is told nothing") {
    Events events;
    hf::sql::Reports reports;
    reports.warn("before anybody listens");
    CHECK(events.warnings == 0);
    reports.report_to(&events);
    reports.warn("heard");
    CHECK(events.warnings == 1);
    reports.report_to(nullptr);
    reports.warn("after the end");
    CHECK(events.warnings == 1);
}
