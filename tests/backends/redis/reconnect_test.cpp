// When a connection is given up, and when not: a server that has become a replica, and a
// request whose short time is over while others' is not.
#include "catch.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;
namespace lab = holdfast::lab;

namespace {

std::string behind(const lab::Proxy& proxy) {
    return "redis://127.0.0.1:" + std::to_string(proxy.port());
}

/// One attempt that goes on while others are asked for.
struct Going {
    Going(Rig& rig, Try& t, milliseconds request_time) {
        t.a.sent = boot_clock::now();
        t.a.deadline = t.a.sent + request_time;
        items.push_back(&t.a);
        boost::asio::co_spawn(rig.io, rig.backend->attempt(items),
                              [this](std::exception_ptr) { done = true; });
        rig.io.restart();
        rig.io.poll();
    }
    std::vector<spi::Attempt*> items;
    bool done = false;
};

}  // namespace

TEST_CASE("reconnect: a server that has become a replica is left, by every connection") {
    auto server = RedisServer::start();
    lab::Proxy proxy(server.port());
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        const bool fenced = std::string(mode) == "mode=fenced";
        Rig rig(behind(proxy), mode);
        auto lane = rig.backend->open_lane();
        const auto by_lane = [&](Try& t) -> Try& {
            t.a.sent = boot_clock::now();
            t.a.deadline = t.a.sent + 2s;
            lane->attempt(t.a);
            return t;
        };
        Try held("a"), by("b"), line("a", 10s, true);
        REQUIRE(rig.attempt(held).granted());
        REQUIRE(by_lane(by).granted());
        REQUIRE(rig.attempt(line).busy());
        const auto before = proxy.counters().connections_accepted;
        server.cli({"REPLICAOF", "127.0.0.1", "1"});
        Try t("c"), u("d");
        rig.attempt(t);
        CHECK(t.error() == errc::unavailable);
        CHECK_FALSE(t.in_doubt());
        // It is there and says no: asked again for as long as the caller waits.
        CHECK(std::get<spi::Attempt::Failed>(t.a.outcome).server_alive);
        CHECK(by_lane(u).error() == errc::unavailable);
        CHECK(rig.renew(held).renewal == spi::Held::Renewal::unknown);
        server.cli({"REPLICAOF", "NO", "ONE"});
        CHECK(rig.attempt(t).granted());
        CHECK(by_lane(u).granted());
        CHECK(rig.renew(held).renewal == spi::Held::Renewal::renewed);
        // The engine's, once a second at most; the lane's; and the one that is told of releases.
        const std::uint64_t wanted = fenced ? 3 : 2;
        rig.until([&] { return proxy.counters().connections_accepted >= before + wanted; },
                  "all of them connect anew");

        for (const Try* each : {&held, &by, &t, &u})
            rig.release(*each);
        rig.withdraw(line);
    }
}

TEST_CASE("reconnect: one request's short time ends that request alone") {
    auto server = RedisServer::start();
    lab::Proxy proxy(server.port());
    Rig rig(behind(proxy));
    Try warm("w"), hasty("a"), calm("b"), calmer("c");
    REQUIRE(rig.attempt(warm).granted());
    CHECK(rig.release(warm) == ReleaseResult::released);
    const auto before = proxy.counters().connections_accepted;
    server.pause();
    Going first(rig, hasty, 60ms), second(rig, calm, 10s), third(rig, calmer, 10s);
    rig.until([&] { return first.done; }, "the first one's time is over");
    CHECK(hasty.in_doubt());
    CHECK_FALSE(second.done);
    server.resume();
    rig.until([&] { return second.done && third.done; }, "the others are answered");
    CHECK(calm.granted());
    CHECK(calmer.granted());
    CHECK(server.cli({"GET", "b"}).text == calm.owner);
    CHECK(server.cli({"GET", "c"}).text == calmer.owner);
    CHECK(proxy.counters().connections_accepted == before);
    // Answers still belong to their questions.
    Try next("d");
    REQUIRE(rig.attempt(next).granted());
    CHECK(server.cli({"GET", "d"}).text == next.owner);
    CHECK(rig.withdraw(hasty) == holdfast::error_code());
    CHECK(server.cli({"EXISTS", "a"}).integer == 0);
}

TEST_CASE("reconnect: one request's short time ends no connecting for the others") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try hasty("a"), calm("b");
    server.pause();  // the kernel accepts, and nothing is answered
    Going first(rig, hasty, 60ms), second(rig, calm, 10s);
    rig.until([&] { return first.done; }, "the first one's time is over");
    CHECK(hasty.error() == errc::unavailable);
    CHECK_FALSE(hasty.in_doubt());
    CHECK_FALSE(second.done);
    server.resume();
    rig.until([&] { return second.done; }, "the other is answered");
    CHECK(calm.granted());
}

TEST_CASE("reconnect: a connection that says nothing is given up, whoever still waits") {
    auto server = RedisServer::start();
    lab::Proxy proxy(server.port());
    Rig rig(behind(proxy));
    Try warm("w"), hasty("a"), calm("b");
    REQUIRE(rig.attempt(warm).granted());
    proxy.black_hole();
    Going first(rig, hasty, 60ms), second(rig, calm, 60s);
    rig.until([&] { return second.done; }, "both are told");
    CHECK(hasty.in_doubt());
    CHECK(calm.in_doubt());
    proxy.heal();
    Try next("d");
    CHECK(rig.attempt(next).granted());
}

TEST_CASE("reconnect: a request that had waited for its connection does not end it") {
    auto server = RedisServer::start();
    lab::Proxy proxy(server.port());
    // An answer takes two thirds of the time, and so does the greeting before the first one. The
    // second one brings no grant: the server has no script.
    proxy.delay_both(200ms);
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        const auto before = proxy.counters().connections_accepted;
        Rig rig(behind(proxy), std::string("request_timeout=600ms&") + mode);
        Try t("a");
        for (int i = 0; i < 10 && !t.granted(); ++i) {
            Going one(rig, t, 600ms);
            rig.until([&] { return one.done; }, "it ends");
        }
        CHECK(t.granted());
        CHECK(proxy.counters().connections_accepted == before + 1);
        CHECK(rig.release(t) == ReleaseResult::released);
    }
}
