// Connections: time-outs, forgotten scripts, credentials, databases, and what a server answers
// that is no Redis server or cannot serve.
#include <sys/resource.h>

#include <fstream>

#include "catch.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "resp/errors.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace redis_tests;
using holdfast::Capability;
using holdfast::ReleaseResult;
using holdfast::SafetyClass;
using holdfast::lab::RedisOptions;

namespace {

std::string url_of(std::uint16_t port) {
    return "redis://127.0.0.1:" + std::to_string(port);
}

std::size_t clients(RedisServer& server) {
    // One is the connection that asks.
    return static_cast<std::size_t>(std::stoul(server.info("clients")["connected_clients"])) - 1;
}

}  // namespace

TEST_CASE("connection: a late answer answers nobody else") {
    test_support::Trial& trial = test_support::this_trial();
    auto server = RedisServer::start();
    holdfast::lab::Proxy proxy(server.port());
    Rig rig(url_of(proxy.port()), "request_timeout=100ms");
    Try first("a"), second("b");
    REQUIRE(rig.attempt(first).granted());
    proxy.delay(holdfast::lab::Direction::to_client, 300ms);
    const auto start = boot_clock::now();
    rig.attempt(second, 100ms);
    CHECK(second.in_doubt());
    CHECK(second.error() == errc::unavailable);
    trial.within(boot_clock::now() - start, 1s, "the answer");
    proxy.heal();
    // On a new connection, so it introduces itself first.
    Try third("c");
    const auto before = rig.backend->requests();
    REQUIRE(rig.attempt(third).granted());
    CHECK(rig.backend->requests() - before == 3);
    CHECK(server.cli({"GET", "c"}).text == third.owner);
    REQUIRE(rig.attempt(second).granted());
    CHECK(server.cli({"GET", "b"}).text == second.owner);
    CHECK(rig.release(second) == ReleaseResult::released);
}

TEST_CASE("connection: one connection for everything that does not wait") {
    auto server = RedisServer::start();
    const auto before = clients(server);
    Rig rig(server.url());
    Try a("a"), b("b");
    rig.attempt({&a, &b});
    CHECK(clients(server) == before + 1);
    Try w("a", 10s, true);
    rig.attempt(w);
    CHECK(clients(server) == before + 2);
}

TEST_CASE("connection: forgotten scripts are sent again") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    for (int i = 0; i < 2; ++i) {
        Try a("a"), b("b"), w("a", 10s, true);
        server.cli({"SCRIPT", "FLUSH"});
        rig.attempt({&a, &b});
        REQUIRE((a.granted() && b.granted()));
        server.cli({"SCRIPT", "FLUSH"});
        REQUIRE(rig.attempt(w).busy());
        server.cli({"SCRIPT", "FLUSH"});
        CHECK(rig.renew(a).renewal == spi::Held::Renewal::renewed);
        server.cli({"SCRIPT", "FLUSH"});
        CHECK(rig.inspect("a").has_value());
        server.cli({"SCRIPT", "FLUSH"});
        CHECK(rig.withdraw(w) == holdfast::error_code());
        server.cli({"SCRIPT", "FLUSH"});
        CHECK(rig.release(a) == ReleaseResult::released);
        CHECK(rig.release(b) == ReleaseResult::released);
    }
    auto lane = rig.backend->open_lane();
    Try t("a");
    server.cli({"SCRIPT", "FLUSH"});
    t.a.sent = boot_clock::now();
    t.a.deadline = t.a.sent + 2s;
    lane->attempt(t.a);
    REQUIRE(t.granted());
    server.cli({"SCRIPT", "FLUSH"});
    auto h = t.held();
    lane->release(h);
    CHECK(h.released == ReleaseResult::released);
}

TEST_CASE("connection: no descriptor left is told at once, and does not last") {
    test_support::Trial& trial = test_support::this_trial();
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try t("a");
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{0, before.rlim_max};
    const auto start = boot_clock::now();
    ::setrlimit(RLIMIT_NOFILE, &none);
    rig.attempt(t, 5s);
    ::setrlimit(RLIMIT_NOFILE, &before);
    trial.within(boot_clock::now() - start, 2s, "the answer");
    CHECK(t.error() == errc::unavailable);
    CHECK_FALSE(t.in_doubt());
    CHECK_THAT(t.a.detail, ContainsSubstring("Too many open files"));
    Try again("a");
    CHECK(rig.attempt(again).granted());
}

TEST_CASE("connection: no descriptor left for a subscription keeps nobody out of the queue") {
    auto server = RedisServer::start();
    Rig rig(server.url(), "wait=queue");
    Try holder("a"), waiter("a", 10s, true);
    REQUIRE(rig.attempt(holder).granted());
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{0, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    rig.attempt(waiter, 5s);
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(waiter.busy());
}

TEST_CASE("connection: refused, unresolvable") {
    test_support::Trial& trial = test_support::this_trial();
    const auto port = holdfast::lab::free_port();
    Rig refused("redis://127.0.0.1:" + port.text());
    Try t("a");
    refused.attempt(t);
    CHECK(t.error() == errc::unavailable);
    CHECK_FALSE(t.in_doubt());
    CHECK_THAT(t.a.detail, ContainsSubstring("127.0.0.1:" + port.text()));
    CHECK_THAT(t.a.detail, ContainsSubstring("refused"));
    // One that would stand in line hears it at once, too.
    Try w("a", 10s, true);
    const auto start = boot_clock::now();
    refused.attempt(w, 5s);
    CHECK(w.error() == errc::unavailable);
    trial.within(boot_clock::now() - start, 2s, "the answer");
    Rig nowhere("redis://no-such-host.invalid:" + port.text());
    Try u("a");
    nowhere.attempt(u, 5s);
    CHECK(u.error() == errc::unavailable);
    CHECK_THAT(u.a.detail, ContainsSubstring("no-such-host.invalid"));
}

TEST_CASE("connection: localhost may be two addresses, one of them dead") {
    auto server = RedisServer::start();
    Rig rig("redis://localhost:" + std::to_string(server.port()));
    // A lane waits for no name server: it goes where the engine has been.
    auto lane = rig.backend->open_lane();
    Try early("a");
    early.a.sent = boot_clock::now();
    early.a.deadline = early.a.sent + 1s;
    lane->attempt(early.a);
    CHECK(early.error() == errc::unavailable);
    Try t("a");
    REQUIRE(rig.attempt(t).granted());
    auto h = t.held();
    lane->release(h);
    CHECK(h.released == ReleaseResult::released);
}

TEST_CASE("connection: passwords, users, rights, databases") {
    RedisOptions options;
    options.password = "s3cret-word";
    options.users = {"app on >app-word ~lock:* ~{lock:* &hf:c:* +@all",
                     "deaf on >app-word ~* resetchannels +@all",
                     "poor on >app-word ~* &* +@all -info -config"};
    auto server = RedisServer::start(options);
    const auto at = "@127.0.0.1:" + std::to_string(server.port());
    SECTION("right") {
        Rig rig(server.url_with_password() + "/3");
        Try t("a");
        REQUIRE(rig.attempt(t).granted());
        CHECK(server.info("keyspace").count("db3") == 1);
        CHECK(server.info("keyspace").count("db0") == 0);
        CHECK(rig.release(t) == ReleaseResult::released);
    }
    SECTION("none, or wrong") {
        for (const std::string& url :
             {server.url(), "redis://:wrong-word" + at, "redis://app:wrong-word" + at}) {
            Rig rig(url);
            Try t("lock:a");
            rig.attempt(t);
            CHECK(t.error() == errc::denied);
            CHECK_THAT(t.a.detail, ContainsSubstring("password"));
            CHECK(t.a.detail.find("wrong-word") == std::string::npos);
        }
    }
    SECTION("a user with rights to some keys") {
        Rig rig("redis://app:app-word" + at);
        Try mine("lock:a", 10s, true), other("other");
        REQUIRE(rig.attempt(mine).granted());
        rig.attempt(other);
        CHECK(other.error() == errc::denied);
        CHECK(rig.renew(mine).renewal == spi::Held::Renewal::renewed);
        CHECK(rig.release(mine) == ReleaseResult::released);
    }
    SECTION("a user who may not subscribe waits all the same, and is warned") {
        Rig rig("redis://deaf:app-word" + at);
        Try h("a"), w("a", 10s, true);
        REQUIRE(rig.attempt(h).granted());
        REQUIRE(rig.attempt(w).busy());
        REQUIRE(rig.events.warnings.size() == 1);
        CHECK_THAT(rig.events.warnings[0], ContainsSubstring("hf:c:"));
        CHECK(rig.release(h) == ReleaseResult::released);
        CHECK(rig.attempt(w).granted());
    }
    SECTION("a user who may not ask what the server is") {
        Rig rig("redis://poor:app-word" + at);
        const auto found = rig.probe();
        REQUIRE(found.has_value());
        CHECK(found->safety == SafetyClass::d);
        REQUIRE_FALSE(rig.events.warnings.empty());
        CHECK_THAT(rig.events.warnings[0], ContainsSubstring("may not ask INFO"));
    }
    SECTION("a database that is not there") {
        Rig rig(server.url_with_password() + "/99");
        Try t("a");
        rig.attempt(t);
        CHECK(t.error() == errc::bad_config);
        CHECK_THAT(t.a.detail, ContainsSubstring("99"));
    }
    SECTION("the password is read again at each connect") {
        holdfast::lab::TempDir dir;
        const auto file = dir / "password";
        std::ofstream(file) << "wrong\n";
        Rig rig(server.url(), "password_file=" + file.string());
        Try t("a");
        rig.attempt(t);
        CHECK(t.error() == errc::denied);
        std::ofstream(file) << "s3cret-word\n";
        CHECK(rig.attempt(t).granted());
    }
}

TEST_CASE("connection: a password where none is asked for") {
    auto server = RedisServer::start();
    Rig rig("redis://:word-that-nobody-wants@127.0.0.1:" + std::to_string(server.port()));
    Try t("a");
    rig.attempt(t);
    CHECK(t.error() == errc::denied);
    CHECK(t.a.detail == "the server asks for no password, but the configuration has one");
}

TEST_CASE("connection: probe") {
    SECTION("kept on disk before each answer") {
        RedisOptions options;
        options.append_only = true;
        auto server = RedisServer::start(options);
        Rig rig(server.url());
        const auto found = rig.probe();
        REQUIRE(found.has_value());
        CHECK(found->safety == SafetyClass::b);
        CHECK(found->has(Capability::survives_server_crash));
        CHECK(rig.events.warnings.empty());
    }
    SECTION("nothing kept, eviction on") {
        RedisOptions options;
        options.config = {"maxmemory 100mb", "maxmemory-policy allkeys-lru"};
        auto server = RedisServer::start(options);
        Rig rig(server.url());
        const auto found = rig.probe();
        REQUIRE(found.has_value());
        CHECK(found->safety == SafetyClass::d);
        CHECK_FALSE(found->has(Capability::survives_server_crash));
        REQUIRE(rig.events.warnings.size() == 2);
        CHECK_THAT(rig.events.warnings[0], ContainsSubstring("append-only file"));
        CHECK_THAT(rig.events.warnings[1], ContainsSubstring("allkeys-lru"));
    }
    SECTION("a replica") {
        auto server = RedisServer::start();
        auto replica = RedisServer::start();
        replica.cli({"REPLICAOF", "127.0.0.1", std::to_string(server.port())});
        Rig rig(replica.url());
        REQUIRE(rig.probe().has_value());
        CHECK_THAT(rig.events.warnings.at(0), ContainsSubstring("replica"));
        Try t("a");
        rig.attempt(t);
        CHECK(t.error() == errc::unavailable);
        CHECK_FALSE(t.in_doubt());
        Rig primary(server.url());
        holdfast::lab::wait_until(
            [&] { return server.info("replication")["connected_slaves"] == "1"; }, 10s,
            "the replica is there");
        REQUIRE(primary.probe().has_value());
        CHECK_THAT(primary.events.warnings.back(), ContainsSubstring("asynchronous"));
    }
    SECTION("a cluster") {
        RedisOptions options;
        options.config = {"cluster-enabled yes"};
        auto server = RedisServer::start(options);
        Rig rig(server.url());
        CHECK(rig.probe().error() == errc::not_supported);
        CHECK_THAT(rig.detail, ContainsSubstring("Cluster"));
    }
}

TEST_CASE("connection: a server that takes no writes grants nothing and loses nothing") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try t("a"), u("b");
    REQUIRE(rig.attempt(t).granted());
    server.cli({"CONFIG", "SET", "maxmemory", "1"});
    rig.attempt(u);
    CHECK(u.error() == errc::unavailable);
    CHECK_FALSE(u.in_doubt());
    CHECK(server.cli({"EXISTS", "b"}).integer == 0);
    // What needs no memory goes on.
    CHECK(rig.renew(t).renewal == spi::Held::Renewal::renewed);
    CHECK(rig.release(t) == ReleaseResult::released);
    server.cli({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(rig.attempt(u).granted());
    CHECK(rig.attempt(t).grant().previous == PreviousHolder::released);
}

TEST_CASE("options: mistakes are told before anything connects") {
    const auto mistakes = [](const std::string& url) {
        holdfast::Diagnostics d;
        const auto chosen = holdfast::parse_url(url, spi::Registry::linked(), d);
        return chosen ? std::size_t{0} : d.entries.size();
    };
    CHECK(mistakes("redis://h/0") == 0);
    CHECK(mistakes("redis://h/x") == 1);
    CHECK(mistakes("redis://h/-1") == 1);
    CHECK(mistakes("redis://h?mode=plain&wait=queue") == 1);
    CHECK(mistakes("redis://h?mode=plain&wait=poll") == 0);
    CHECK(mistakes("redis://h?tls_verify=no") == 1);
    CHECK(mistakes("rediss://h?tls_cert_file=/x") == 1);
    CHECK(mistakes("rediss://h?tls_server_name=cache.example") == 0);
    CHECK(mistakes("rediss://h?tls_server_name=a%20b") == 1);
    CHECK(mistakes("redis://h?tls_server_name=cache.example") == 1);
    CHECK(mistakes("redis://h?client_name=a%20b") == 1);
    CHECK(mistakes("redis://h?mode=fast") == 1);
}
