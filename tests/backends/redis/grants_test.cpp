// What the scripts make of a name: its tokens, a request that comes late, keys of another kind or
// of somebody else, and what operators see.
#include "catch.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wait_until.hpp"
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

TEST_CASE("grants: a token that is ahead of the server's clock grows on") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    server.cli({"SET", "{a}:hf:s", "1:9000000000000000:0r:"});
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
    CHECK(seen->last_token.value == a.token());
    CHECK(seen->holders[0].held_for >= 0ms);
    CHECK(seen->holders[0].held_for < 5s);
    CHECK(rig.list("").value() == std::vector<std::string>{"else", "one", "two"});
    CHECK(rig.list("", 2).value() == std::vector<std::string>{"else", "one"});
    CHECK(rig.list("t").value() == std::vector<std::string>{"two"});
    rig.release(b);
    CHECK(rig.list("t").value().empty());
    CHECK(rig.inspect("nobody").value().holders.empty());
}
