// The blocking path: the same protocol on a connection of its own, never longer than its deadline.
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "acceptor.hpp"
#include "catch.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/spi/registry.hpp"
#include "redis/lane.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;

namespace {

/// A server in clear, or over TLS, and what clients of it need in their URL.
struct Place {
    explicit Place(bool tls)
        : server(start(tls)), query(tls ? "&tls_ca_file=" + server.ca_file().string() : "") {}
    std::string url(std::uint16_t port) const {
        const std::string url = server.url();
        return url.substr(0, url.rfind(':') + 1) + std::to_string(port);
    }
    static RedisServer start(bool tls) {
        holdfast::lab::RedisOptions options;
        options.tls = tls;
        return RedisServer::start(options);
    }
    RedisServer server;
    const std::string query;
};

Place place() {
    return Place(GENERATE(false, true));
}

}  // namespace

TEST_CASE("lane: grant and release, in both modes") {
    auto where = place();
    INFO(where.query);
    RedisServer& server = where.server;
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        Rig rig(server.url(), mode + where.query);
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
    test_support::Trial& trial = test_support::this_trial();
    auto where = place();
    INFO(where.query);
    RedisServer& server = where.server;
    Rig rig(server.url(), "wait=queue" + where.query);
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
    trial.within(took, 1500ms, "the answer");
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
    auto where = place();
    INFO(where.query);
    RedisServer& server = where.server;
    holdfast::lab::Proxy proxy(server.port());
    Rig rig(where.url(proxy.port()), "wait=queue" + where.query);
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
    auto where = place();
    INFO(where.query);
    RedisServer& server = where.server;
    Rig rig(server.url(), "wait=queue" + where.query);
    auto lane = rig.backend->open_lane();
    Try t("a");
    REQUIRE(attempt(*lane, t).granted());
    server.cli({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    // It looks only after a pause.
    const auto over = holdfast::boot_clock::now() + 150ms;
    holdfast::lab::wait_until([&] { return holdfast::boot_clock::now() >= over; }, 5s, "the pause");
    CHECK(release(*lane, t) == ReleaseResult::released);
}

TEST_CASE("lane: a host's name is believed again when the engine's connection answers") {
    auto server = RedisServer::start();
    Rig rig("redis://localhost:" + std::to_string(server.port()));
    auto lane = rig.backend->open_lane();
    Try engine("b"), warm("c"), late("a"), next("a");
    REQUIRE(rig.attempt(engine).granted());
    REQUIRE(attempt(*lane, warm).granted());
    server.pause();
    attempt(*lane, late, 200ms);
    server.resume();
    CHECK(late.in_doubt());
    CHECK(rig.withdraw(late) == holdfast::error_code());
    CHECK(attempt(*lane, next).granted());
}

// The engine has renewed what it knew of: nobody would ask the new server for this lease.
TEST_CASE("lane: what the server before a move still says counts no more") {
    auto server = RedisServer::start();
    holdfast::lab::Proxy proxy(server.port());
    holdfast::Diagnostics d;
    const auto chosen = holdfast::parse_url("redis://127.0.0.1:" + std::to_string(proxy.port()),
                                            spi::Registry::linked(), d);
    REQUIRE(chosen.has_value());
    const auto shared = std::make_shared<holdfast::redis::Shared>(chosen->settings);
    holdfast::redis::Lane lane(shared, std::make_shared<holdfast::redis::InFlight>(), nullptr);
    Try warm("b"), t("a"), next("a");
    REQUIRE(attempt(lane, warm).granted());
    proxy.delay(holdfast::lab::Direction::to_client, 300ms);
    std::thread asks([&] { attempt(lane, t); });
    holdfast::lab::wait_until(
        [&] {
            return server.cli({"EXISTS", "a"}).integer == 1;
        },
        5s, "it is granted there");
    shared->moved();
    asks.join();
    CHECK(t.in_doubt());
    proxy.heal();
    server.cli({"DEL", "a"});
    CHECK(attempt(lane, next).granted());
}

TEST_CASE("lane: an answer too many in the handshake is no answer to the first command") {
    namespace asio = boost::asio;
    const test_support::Acceptor server([](test_support::Tcp::socket& peer, std::size_t) {
        // TIME and HELLO; the answers to both, and a grant that was never asked for.
        boost::system::error_code ended;
        std::string in(14 + 53, ' ');
        asio::read(peer, asio::buffer(in), ended);
        const std::string out =
            "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n-ERR unknown command\r\n"
            "$20\r\ng 1700000000000000 n\r\n";
        asio::write(peer, asio::buffer(out), ended);
        asio::read(peer, asio::buffer(in), ended);
    });
    Rig rig("redis://127.0.0.1:" + std::to_string(server.port()));
    auto lane = rig.backend->open_lane();
    Try t("a");
    attempt(*lane, t, 1s);
    CHECK_FALSE(t.granted());
    CHECK(t.error() == errc::unavailable);
}
