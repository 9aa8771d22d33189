// What the scripts promise of one name: tokens that only grow, what became of the holder before, no
// late request that takes the lock, and nothing of anybody else's overwritten.
#include "catch.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;

TEST_CASE("grants: the first token of a name is the server's time in microseconds") {
    // The seconds of 1996 have nine digits, those of today ten.
    const auto behind = GENERATE(0h, 30 * 365 * 24h);
    holdfast::lab::TempDir dir;
    holdfast::lab::WallClock clock(dir / "offset");
    clock.set(-behind);
    holdfast::lab::RedisOptions options;
    options.environment = clock.environment();
    auto server = RedisServer::start(options);
    Rig rig(server.url());
    const auto now = [&] {
        const auto time = server.cli({"TIME"});
        return std::stoull(time.elements.at(0).text) * 1'000'000 +
               std::stoull(time.elements.at(1).text);
    };
    for (int i = 0; i < 60; ++i) {
        Try t("a" + std::to_string(i));
        const auto before = now();
        REQUIRE(rig.attempt(t).granted());
        CHECK(t.token() >= before);
        CHECK(t.token() <= now());
        const auto state = server.cli({"GET", "{" + t.name + "}:hf:s"}).text;
        CHECK(state.find(':', 2) == 18);
    }
}

TEST_CASE("grants: the token grows over deletion, clock steps and a restart") {
    holdfast::lab::RedisOptions options;
    options.append_only = true;
    auto server = RedisServer::start(options);
    Rig rig(server.url());
    std::uint64_t last = 0;
    const auto grant = [&] {
        Try t("a", 10s);
        REQUIRE(rig.attempt(t).granted());
        CHECK(t.token() > last);
        last = t.token();
        return rig.release(t);
    };
    CHECK(grant() == ReleaseResult::released);
    SECTION("the lock's key is deleted by hand") {
        Try t("a");
        REQUIRE(rig.attempt(t).granted());
        last = t.token();
        server.cli({"DEL", "a"});
        const auto h = rig.renew(t);
        CHECK(h.renewal == spi::Held::Renewal::lost);
        CHECK(h.renewal_error == errc::lost);
        grant();
    }
    SECTION("the last token is ahead of the server's clock") {
        const std::string ahead = "9000000000000000";
        server.cli({"SET", "{a}:hf:s", "1:" + ahead + ":0r:"});
        Try t("a");
        REQUIRE(rig.attempt(t).granted());
        CHECK(t.token() == 9000000000000001U);
        CHECK(rig.release(t) == ReleaseResult::released);
        // It is kept until a day after the token, not a day after now.
        CHECK(server.cli({"PEXPIRETIME", "{a}:hf:s"}).integer == 9000000000000 + 86400000);
        Try u("a");
        REQUIRE(rig.attempt(u).granted());
        CHECK(u.token() == 9000000000000002U);
        CHECK(server.cli({"PEXPIRETIME", "{a}:hf:s"}).integer > 9000000000000 + 8 * 86400000LL);
        CHECK(rig.release(u) == ReleaseResult::released);
    }
    SECTION("the server restarts with its data") {
        server.restart(holdfast::lab::Data::keep);
        server.wait_ready();
        Try t("a");
        // The old connection is found broken by the first request.
        for (int i = 0; i < 3 && !t.granted(); ++i)
            rig.attempt(t);
        REQUIRE(t.granted());
        CHECK(t.token() > last);
        CHECK(rig.release(t) == ReleaseResult::released);
    }
}

TEST_CASE("grants: a withdrawn owner's late request does nothing") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try holder("a"), ghost("a");
    // Frozen server: the request is sent, not answered, and executed later.
    REQUIRE(rig.attempt(holder).granted());
    CHECK(rig.release(holder) == ReleaseResult::released);
    server.pause();
    rig.attempt(ghost, 100ms);
    CHECK(ghost.in_doubt());
    server.resume();
    CHECK(rig.withdraw(ghost) == holdfast::error_code());
    // Whatever order the server read the two connections in, nothing is left.
    CHECK(holdfast::lab::stays_true(
        [&] {
            return server.cli({"EXISTS", "a"}).integer == 0;
        },
        200ms));
    Try next("a");
    CHECK(rig.attempt(next).granted());
    CHECK(rig.release(next) == ReleaseResult::released);
}

TEST_CASE("grants: the mark refuses its owner until its deadline") {
    auto server = RedisServer::start();
    holdfast::lab::Proxy proxy(server.port());
    Rig rig("redis://127.0.0.1:" + std::to_string(proxy.port()));
    Try warm("b"), ghost("a");
    REQUIRE(rig.attempt(warm).granted());
    proxy.swallow_then_cut(holdfast::lab::Direction::to_server, 1);
    rig.attempt(ghost, 60s);  // cut long before: a request may be under way for a minute
    REQUIRE(ghost.in_doubt());
    proxy.wait_fired();
    proxy.heal();
    CHECK(rig.withdraw(ghost) == holdfast::error_code());
    CHECK(server.cli({"ZSCORE", "{a}:hf:x", ghost.owner}).text.size() == 13);
    // Here it comes, late.
    rig.attempt(ghost);
    CHECK(ghost.error() == errc::cancelled);
    CHECK(server.cli({"EXISTS", "a"}).integer == 0);
    // Nobody else minds.
    Try next("a");
    CHECK(rig.attempt(next).granted());
    CHECK(rig.release(next) == ReleaseResult::released);
}

TEST_CASE("grants: a request that comes too late by the server's clock") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try t("a");
    REQUIRE(rig.attempt(t).granted());
    CHECK(rig.release(t) == ReleaseResult::released);
    Try late("a");
    late.a.sent = boot_clock::now();
    late.a.deadline = late.a.sent - 5s;  // of the past: refused by the server or not sent at all
    std::vector<spi::Attempt*> items{&late.a};
    rig.run(rig.backend->attempt(items));
    CHECK_FALSE(late.granted());
    CHECK(server.cli({"EXISTS", "a"}).integer == 0);
}

TEST_CASE("grants: what is not a lock stays as it is") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    server.cli({"RPUSH", "list", "x"});
    Try t("list", 10s, true), good("good");
    rig.attempt(t);
    CHECK(t.error() == errc::kind_mismatch);
    CHECK(server.cli({"LRANGE", "list", "0", "-1"}).elements.size() == 1);
    CHECK(rig.withdraw(t) == holdfast::error_code());
    // In one call with others it harms nobody.
    Try again("list");
    rig.attempt({&again, &good});
    CHECK(again.error() == errc::kind_mismatch);
    CHECK(good.granted());
    server.cli({"RPUSH", "{bad}:hf:s", "x"});
    Try bad("bad"), good2("good2");
    rig.attempt({&good2, &bad});
    CHECK(bad.error() == errc::kind_mismatch);
    CHECK(good2.granted());
    CHECK(rig.inspect("list").error() == errc::kind_mismatch);
    CHECK(rig.break_lock("list", true).error() == errc::kind_mismatch);
    CHECK(server.cli({"TYPE", "list"}).text == "list");
    CHECK(server.cli({"EXISTS", "bad"}).integer == 0);
    // A state of a later format is not touched.
    server.cli({"SET", "{new}:hf:s", "2:whatever"});
    Try later("new");
    CHECK(rig.attempt(later).error() == errc::kind_mismatch);
    CHECK(server.cli({"GET", "{new}:hf:s"}).text == "2:whatever");
}

TEST_CASE("grants: a foreign holder is respected") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    server.cli({"SET", "a", "0123456789abcdef", "PX", "60000"});
    Try t("a", 10s, true);
    REQUIRE(rig.attempt(t).busy());
    CHECK(server.cli({"GET", "a"}).text == "0123456789abcdef");
    const auto look = std::get<spi::Attempt::Busy>(t.a.outcome).look_within;
    CHECK(look <= 150ms);
    const auto seen = rig.inspect("a");
    REQUIRE(seen.has_value());
    REQUIRE(seen->holders.size() == 1);
    CHECK(seen->holders[0].foreign);
    REQUIRE(seen->waiters.size() == 1);
    CHECK(seen->waiters[0].owner == t.owner);
    CHECK(rig.break_lock("a").error() == errc::not_supported);
    const auto broken = rig.break_lock("a", true);
    REQUIRE(broken.has_value());
    CHECK(broken->holder.foreign);
    REQUIRE(rig.attempt(t).granted());
    CHECK(rig.release(t) == ReleaseResult::released);
}

TEST_CASE("grants: inspect and list") {
    auto server = RedisServer::start();
    Rig rig(server.url(), "namespace=app:");
    Try a("one"), b("two"), other("else");
    rig.attempt({&a, &b, &other});
    REQUIRE(a.granted());
    CHECK(server.cli({"GET", "app:one"}).text == a.owner);
    const auto seen = rig.inspect("one");
    REQUIRE(seen.has_value());
    REQUIRE(seen->holders.size() == 1);
    CHECK(seen->name == "one");
    CHECK(seen->holders[0].owner == a.owner);
    CHECK(seen->holders[0].note == "test");
    CHECK(seen->holders[0].pid == getpid());
    CHECK(seen->holders[0].token.value == a.token());
    CHECK(seen->last_token.value == a.token());
    CHECK_FALSE(seen->holders[0].foreign);
    CHECK(seen->holders[0].ttl_left > 9s);
    CHECK(seen->holders[0].held_for >= 0ms);
    CHECK(seen->holders[0].held_for < 5s);
    CHECK(rig.list("").value() == std::vector<std::string>{"else", "one", "two"});
    CHECK(rig.list("", 2).value() == std::vector<std::string>{"else", "one"});
    CHECK(rig.list("t").value() == std::vector<std::string>{"two"});
    rig.release(b);
    CHECK(rig.list("t").value().empty());
    CHECK(rig.inspect("nobody")->holders.empty());
}
