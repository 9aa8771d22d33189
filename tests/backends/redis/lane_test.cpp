// The blocking path: the same protocol on a connection of its own, never longer than its deadline.
#include "catch.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"
#include "stalls.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;

namespace {

Try& attempt(spi::Lane& lane, Try& t, milliseconds request_time = 2s) {
    t.a.sent = boot_clock::now();
    t.a.deadline = t.a.sent + request_time;
    lane.attempt(t.a);
    return t;
}

ReleaseResult release(spi::Lane& lane, const Try& t,
                      holdfast::Outcome how = holdfast::Outcome::done) {
    auto h = t.held(how);
    lane.release(h);
    return h.released;
}

}  // namespace

TEST_CASE("lane: grant and release, in both modes") {
    auto server = RedisServer::start();
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        Rig rig(server.url(), mode);
        auto lane = rig.backend->open_lane();
        std::uint64_t last = 0;
        for (int i = 0; i < 100; ++i) {
            Try t(i % 2 == 0 ? "a" : "b"), busy(t.name);
            REQUIRE(attempt(*lane, t).granted());
            CHECK(server.cli({"GET", t.name}).text == t.owner);
            CHECK(attempt(*lane, busy).busy());
            CHECK(release(*lane, busy) == ReleaseResult::owned_by_other);
            CHECK(release(*lane, t) == ReleaseResult::released);
            CHECK(release(*lane, t) == ReleaseResult::already_expired);
            if (t.token() == 0) continue;
            CHECK(t.token() > last);
            last = t.token();
        }
    }
    CHECK(server.cli({"EXISTS", "a", "b"}).integer == 0);
}

TEST_CASE("lane: abandoned work is told to the next holder") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    auto lane = rig.backend->open_lane();
    Try t("a"), u("a");
    attempt(*lane, t);
    CHECK(release(*lane, t, holdfast::Outcome::abandoned) == ReleaseResult::released);
    attempt(*lane, u);
    CHECK(u.grant().previous == PreviousHolder::abandoned);
}

TEST_CASE("lane: a release wakes the waiter in line") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    auto lane = rig.backend->open_lane();
    Try t("a"), w("a", 10s, true);
    REQUIRE(attempt(*lane, t).granted());
    REQUIRE(rig.attempt(w).busy());
    CHECK(release(*lane, t) == ReleaseResult::released);
    rig.until([&] { return rig.woken(w); }, "the waiter is told");
    CHECK(rig.attempt(w).granted());
    CHECK(w.grant().previous == PreviousHolder::released);
}

TEST_CASE("lane: a server that hangs costs the deadline, and the doubt is resolved") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    auto lane = rig.backend->open_lane();
    Try first("a"), t("a");
    REQUIRE(attempt(*lane, first).granted());
    REQUIRE(release(*lane, first) == ReleaseResult::released);
    server.pause();
    const auto start = boot_clock::now();
    attempt(*lane, t, 200ms);
    const auto took = boot_clock::now() - start;
    CHECK(t.in_doubt());
    CHECK(took >= 150ms);
    CHECK(took < 1500ms + test_support::stood_still());
    server.resume();
    CHECK(rig.withdraw(t) == holdfast::error_code());
    CHECK(holdfast::lab::stays_true(
        [&] {
            return server.cli({"EXISTS", "a"}).integer == 0;
        },
        100ms));
    Try next("a");
    CHECK(attempt(*lane, next).granted());
}

TEST_CASE("lane: a lost answer is adopted by the engine with the same owner") {
    auto server = RedisServer::start();
    holdfast::lab::Proxy proxy(server.port());
    Rig rig("redis://127.0.0.1:" + std::to_string(proxy.port()));
    auto lane = rig.backend->open_lane();
    Try warm("b"), t("a");
    REQUIRE(attempt(*lane, warm).granted());
    proxy.swallow(holdfast::lab::Direction::to_client);
    attempt(*lane, t, 200ms);
    REQUIRE(t.in_doubt());
    CHECK(server.cli({"GET", "a"}).text == t.owner);
    proxy.heal();
    REQUIRE(rig.attempt(t).granted());
    CHECK(t.grant().previous == PreviousHolder::none);
    CHECK(rig.release(t) == ReleaseResult::released);
    CHECK(server.cli({"EXISTS", "a"}).integer == 0);
}

TEST_CASE("lane: a connection that the server closed meanwhile is replaced unseen") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    auto lane = rig.backend->open_lane();
    Try t("a");
    REQUIRE(attempt(*lane, t).granted());
    server.cli({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    // It looks only after a pause.
    CHECK(holdfast::lab::stays_true([] { return true; }, 150ms));
    CHECK(release(*lane, t) == ReleaseResult::released);
}
