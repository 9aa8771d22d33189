// mode=plain: the documents' lock, and nothing else.
#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::Capability;
using holdfast::ReleaseResult;

TEST_CASE("plain: grant, renew, release") {
    auto server = RedisServer::start();
    Rig rig(server.url(), "mode=plain");
    CHECK_FALSE(rig.backend->capabilities().has(Capability::fencing));
    Try a("a"), b("b"), busy("a");
    rig.attempt({&a, &b, &busy});
    REQUIRE(a.granted());
    REQUIRE(b.granted());
    REQUIRE(busy.busy());
    CHECK(a.token() == 0);
    CHECK(server.cli({"KEYS", "*"}).elements.size() == 2);
    server.cli({"SCRIPT", "FLUSH"});
    server.cli({"PEXPIRE", "a", "5000"});
    CHECK(rig.renew(a).renewal == spi::Held::Renewal::renewed);
    CHECK(server.cli({"PTTL", "a"}).integer > 9000);
    CHECK(rig.release(a) == ReleaseResult::released);
    CHECK(rig.release(a) == ReleaseResult::already_expired);
    server.cli({"SET", "b", "foreign"});
    CHECK(rig.renew(b).renewal == spi::Held::Renewal::lost);
    CHECK(rig.release(b) == ReleaseResult::owned_by_other);
    CHECK(server.cli({"GET", "b"}).text == "foreign");
    server.cli({"DEL", "b"});
    CHECK(server.cli({"KEYS", "*"}).elements.empty());
}

TEST_CASE("plain: an answer that was lost is found out") {
    auto server = RedisServer::start();
    Rig rig(server.url(), "mode=plain");
    Try t("a");
    server.pause();
    rig.attempt(t, 200ms);
    server.resume();
    if (t.in_doubt()) server.cli({"SET", "a", t.owner, "PX", "10000"});
    holdfast::lab::wait_until([&] { return rig.attempt(t).granted(); }, 5s, "it is ours");
    CHECK(rig.withdraw(t) == holdfast::error_code());
    CHECK(server.cli({"EXISTS", "a"}).integer == 0);
}

TEST_CASE("plain: inspect, list, break") {
    auto server = RedisServer::start();
    Rig rig(server.url(), "mode=plain");
    Try t("a", 3s);
    REQUIRE(rig.attempt(t).granted());
    server.cli({"SET", "other", "no lock"});
    CHECK(rig.list("").value() == std::vector<std::string>{"a"});
    CHECK(rig.inspect("a").value().holders.at(0).pid == getpid());
    const auto broken = rig.break_lock("a");
    REQUIRE(broken.has_value());
    CHECK(broken->holder.owner == t.owner);
    CHECK(rig.inspect("a").value().holders.at(0).revoked);
    const auto h = rig.renew(t);
    CHECK(h.renewal == spi::Held::Renewal::lost);
    CHECK(h.renewal_error == errc::revoked);
    holdfast::lab::wait_until(
        [&] {
            return server.cli({"EXISTS", "a"}).integer == 0;
        },
        5s, "the ttl is over");
    Try u("a");
    REQUIRE(rig.attempt(u).granted());
    CHECK(rig.break_lock("a", true).value().free_in == 0ms);
    CHECK(server.cli({"EXISTS", "a"}).integer == 0);
    CHECK(server.cli({"KEYS", "*"}).elements.size() == 1);
}
