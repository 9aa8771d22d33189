// The path in halves: the lane's protocol where the caller waits for the descriptor himself.
#include <poll.h>

#include <boost/asio/bind_executor.hpp>
#include <holdfast/holdfast.hpp>

#include "catch.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;
namespace asio = boost::asio;

namespace {

bool readable(const spi::AsyncLane& lane, std::chrono::milliseconds cap) {
    pollfd p{lane.descriptor(), POLLIN, 0};
    return ::poll(&p, 1, static_cast<int>(cap.count())) == 1;
}

/// Waits for the rest of the exchange that was begun.
template <class Item>
void finish(spi::AsyncLane& lane, Item& item) {
    do
        REQUIRE(readable(lane, 5s));
    while (!lane.finish(item));
}

bool begin(spi::AsyncLane& lane, Try& t) {
    t.a.sent = boot_clock::now();
    t.a.deadline = t.a.sent + 2s;
    return lane.begin(t.a);
}

Try& attempt(spi::AsyncLane& lane, Try& t) {
    REQUIRE(begin(lane, t));
    finish(lane, t.a);
    return t;
}

ReleaseResult release(spi::AsyncLane& lane, const Try& t) {
    auto h = t.held();
    h.sent = boot_clock::now();
    REQUIRE(lane.begin(h));
    finish(lane, h);
    return h.released;
}

std::unique_ptr<spi::AsyncLane> opened(Rig& rig) {
    auto lane = rig.backend->open_async_lane();
    Try nothing("nothing");
    REQUIRE_FALSE(begin(*lane, nothing));  // not connected
    REQUIRE(lane->descriptor() < 0);
    REQUIRE(lane->open(boot_clock::now() + 2s));
    REQUIRE(lane->descriptor() >= 0);
    return lane;
}

void kill_connections(RedisServer& server) {
    server.cli({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
}

}  // namespace

TEST_CASE("in halves: grant and release, in both modes, of a server that forgets its scripts") {
    auto server = RedisServer::start();
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        Rig rig(server.url(), mode);
        auto lane = opened(rig);
        std::uint64_t last = 0;
        for (int i = 0; i < 50; ++i) {
            Try t(i % 2 == 0 ? "a" : "b"), busy(t.name);
            if (i % 10 == 5) server.cli({"SCRIPT", "FLUSH"});
            REQUIRE(attempt(*lane, t).granted());
            CHECK(server.cli({"GET", t.name}).text == t.owner);
            CHECK(attempt(*lane, busy).busy());
            if (i % 10 == 6) server.cli({"SCRIPT", "FLUSH"});
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

TEST_CASE("in halves: nothing has come is no answer, and an error is one") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    auto lane = opened(rig);
    Try t("a"), list("list");
    server.pause();
    REQUIRE(begin(*lane, t));
    CHECK_FALSE(lane->finish(t.a));
    server.resume();
    finish(*lane, t.a);
    CHECK(t.granted());
    server.cli({"LPUSH", "list", "x"});
    CHECK(attempt(*lane, list).error() == errc::kind_mismatch);
    CHECK(release(*lane, t) == ReleaseResult::released);
}

TEST_CASE("in halves: who gives up leaves a doubt that can be resolved, and a new connection") {
    auto server = RedisServer::start();
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        Rig rig(server.url(), mode);
        auto lane = opened(rig);
        Try t("a"), next("a"), kept("k");
        REQUIRE(attempt(*lane, kept).granted());
        server.pause();
        REQUIRE(begin(*lane, t));
        const int fd = lane->descriptor();
        lane->abandon(t.a);
        CHECK(t.in_doubt());
        CHECK(lane->descriptor() < 0);  // lent to nobody as it is
        pollfd p{fd, POLLIN, 0};
        CHECK(::poll(&p, 1, 0) == 1);  // who waits for it is told
        server.resume();
        CHECK(rig.withdraw(t) == holdfast::error_code());
        CHECK(holdfast::lab::stays_true(
            [&] {
                return server.cli({"EXISTS", "a"}).integer == 0;
            },
            100ms));
        REQUIRE(lane->open(boot_clock::now() + 2s));
        CHECK(attempt(*lane, next).granted());
        CHECK(release(*lane, next) == ReleaseResult::released);
        // A release: the engine repeats it.
        auto h = kept.held();
        h.sent = boot_clock::now();
        REQUIRE(lane->begin(h));
        lane->abandon(h);
        CHECK(h.released == ReleaseResult::unreachable);
        const auto again = rig.release(kept);
        CHECK((again == ReleaseResult::released || again == ReleaseResult::already_expired));
        CHECK(server.cli({"EXISTS", "k"}).integer == 0);
    }
}

TEST_CASE("in halves: a connection that the server closed") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    auto lane = opened(rig);
    Try t("a"), u("a");
    REQUIRE(attempt(*lane, t).granted());
    REQUIRE(release(*lane, t) == ReleaseResult::released);
    kill_connections(server);
    REQUIRE(readable(*lane, 5s));
    // Within a moment of its last use it is not looked at: what was sent is in doubt.
    if (begin(*lane, t)) {
        finish(*lane, t.a);
        CHECK(t.in_doubt());
        CHECK(rig.withdraw(t) == holdfast::error_code());
    }
    CHECK(lane->descriptor() < 0);
    REQUIRE(lane->open(boot_clock::now() + 2s));
    kill_connections(server);
    CHECK(holdfast::lab::stays_true([] { return true; }, 150ms));
    CHECK_FALSE(begin(*lane, u));  // after a pause it is: nothing was sent
    CHECK(lane->descriptor() < 0);
    server.kill();
    CHECK_FALSE(lane->open(boot_clock::now() + 1s));
    CHECK_FALSE(begin(*lane, u));
}

TEST_CASE(
    "in halves: calls in a row get a connection of their own, and another one when it breaks") {
    asio::io_context io;  // outlives the client, as executors have to
    auto server = RedisServer::start();
    auto client = holdfast::Client::open(server.url() + "?ttl=60s").value();
    const auto lock = client.lock("a").value();
    const auto connections = [&] {
        const std::string all = server.cli({"CLIENT", "LIST"}).text;
        return std::count(all.begin(), all.end(), '\n');
    };
    const auto cycles = [&](int count) {
        for (int i = 0; i < count; ++i) {
            bool released = false;
            holdfast::Lease lease;
            lock->async_acquire(
                {.wait = 5s},
                asio::bind_executor(io, [&](holdfast::error_code ec, holdfast::Lease l) {
                    REQUIRE_FALSE(ec);
                    lease = std::move(l);
                    lease.async_release(
                        holdfast::Outcome::done,
                        asio::bind_executor(io, [&](holdfast::error_code, ReleaseResult r) {
                            released = r == ReleaseResult::released;
                        }));
                }));
            io.restart();
            io.run();
            REQUIRE(released);
        }
    };
    cycles(1);
    const auto few = connections();
    cycles(2);
    CHECK(connections() == few);  // who asks now and then needs no more of them
    cycles(20);
    holdfast::lab::wait_until([&] { return connections() == few + 1; }, 5s, "one more");
    cycles(1);
    const auto before = client.stats().requests;
    cycles(100);
    CHECK(client.stats().requests - before == 200);
    CHECK(connections() == few + 1);
    // Killed, it is replaced in the same way.
    kill_connections(server);
    cycles(40);
    holdfast::lab::wait_until([&] { return connections() == few + 1; }, 5s, "again");
}
