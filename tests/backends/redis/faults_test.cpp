// What a Redis server may say instead of serving, and what its wall clock, its memory and its limit
// on clients do to a lock. Each fault is proved by the server's own answer to somebody else.
#include <filesystem>
#include <thread>

#include "catch.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast/lab/error.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;
using holdfast::lab::RedisOptions;
namespace lab = holdfast::lab;

namespace {

/// A server that answers every write with a word of its own, until it is made well again.
class Sick {
public:
    Sick(RedisServer& server, std::string word) : server_(server), word_(std::move(word)) {
        if (word_ == "NOREPLICAS") {
            say({"CONFIG", "SET", "min-replicas-to-write", "1"});
        } else if (word_ == "MASTERDOWN") {
            say({"CONFIG", "SET", "replica-serve-stale-data", "no"});
            say({"REPLICAOF", "127.0.0.1", "1"});
        } else if (word_ == "MISCONF") {
            // What it cannot rename its snapshot to.
            std::filesystem::create_directories(server.data_directory() / "dump.rdb" / "x");
            say({"CONFIG", "SET", "save", "3600 1000000"});
            say({"BGSAVE"});
        } else if (word_ == "BUSY") {
            say({"CONFIG", "SET", "busy-reply-threshold", "5"});
            stuck_ = std::make_unique<lab::RedisConnection>(server.connect());
            stuck_->send({"EVAL", "while true do end", "0"});
        }
        lab::wait_until(
            [&] {
                // A replica says first that it is one, to whoever writes.
                return server_
                    .cli(word_ == "MASTERDOWN" ? std::vector<std::string>{"GET", "probe"}
                                               : std::vector<std::string>{"SET", "probe", "x"})
                    .text.starts_with(word_);
            },
            10s, word_.c_str());
    }
    ~Sick() {
        if (word_ == "NOREPLICAS") server_.cli({"CONFIG", "SET", "min-replicas-to-write", "0"});
        if (word_ == "MASTERDOWN") server_.cli({"REPLICAOF", "NO", "ONE"});
        if (word_ == "MISCONF") server_.cli({"CONFIG", "SET", "save", ""});
        if (word_ == "BUSY") server_.cli({"SCRIPT", "KILL"});
        (void)lab::reached([&] { return server_.cli({"SET", "probe", "x"}).is_ok(); }, 10s);
    }
    Sick(const Sick&) = delete;
    Sick& operator=(const Sick&) = delete;

private:
    void say(const std::vector<std::string>& command) {
        const auto answer = server_.cli(command);
        INFO(lab::to_string(answer));
        REQUIRE_FALSE(answer.is_error());
    }
    RedisServer& server_;
    const std::string word_;
    std::unique_ptr<lab::RedisConnection> stuck_;
};

holdfast::Client client_of(const std::string& url) {
    holdfast::Diagnostics words;
    holdfast::ClientOptions options;
    options.diagnostics = &words;
    auto client = holdfast::Client::open(url, options);
    INFO(words.text());
    REQUIRE(client.has_value());
    return *client;
}

}  // namespace

TEST_CASE("faults: a server that answers every write with an error grants and forgets nothing") {
    for (const std::string word : {"NOREPLICAS", "MASTERDOWN", "MISCONF", "BUSY"})
        for (const char* mode : {"mode=fenced", "mode=plain"}) {
            INFO(word << ' ' << mode);
            auto server = RedisServer::start();
            Rig rig(server.url(), mode);
            Try held("a", 60s), other("b", 60s);
            REQUIRE(rig.attempt(held).granted());
            {
                const Sick sick(server, word);
                rig.attempt(other);
                CHECK(other.error() == errc::unavailable);
                CHECK_FALSE(other.in_doubt());
                CHECK_THAT(other.a.detail,
                           ContainsSubstring(word) || ContainsSubstring("READONLY"));
                const spi::Held renewed = rig.renew(held);
                CHECK(renewed.renewal == spi::Held::Renewal::unknown);
                CHECK(renewed.renewal_error == errc::unavailable);
                CHECK_THAT(renewed.detail,
                           ContainsSubstring(word) || ContainsSubstring("READONLY"));
                CHECK(rig.release(held) == ReleaseResult::unreachable);
            }
            CHECK(server.cli({"EXISTS", "b"}).integer == 0);
            CHECK(rig.renew(held).renewal == spi::Held::Renewal::renewed);
            CHECK(rig.release(held) == ReleaseResult::released);
            CHECK(rig.attempt(other).granted());
        }
}

TEST_CASE("faults: a server that is loading its data is waited for, and the lease lives on") {
    RedisOptions options;
    options.cap = 60s;
    // It looks at its sockets after each key: an answer takes 2 ms, the loading some seconds. Were
    // the answer slower than request_timeout, the grant would rightly be in doubt.
    options.config = {"key-load-delay 2000", "loading-process-events-interval-bytes 1024",
                      "rdbcompression no"};
    auto server = RedisServer::start(options);
    const auto client = client_of(server.url() + "?ttl=60s&request_timeout=1s");
    auto lease = client.make_lock("a").value()->acquire().value();
    server.cli({"EVAL",
                "local text = string.rep('x', 2000) "
                "for i = 1, 2500 do redis.call('SET', 'k' .. i, text) end",
                "0"});
    std::thread restarting([&] { server.restart(lab::Data::keep); });
    const bool loading = lab::reached(
        [&] {
            try {
                return server.cli({"GET", "a"}).text.starts_with("LOADING");
            } catch (const lab::LabError&) {
                return false;  // between its end and its start nobody listens
            }
        },
        30s);
    const auto renewed = lease.renew();
    const auto refused = client.make_lock("b").value()->try_acquire();
    bool still = false;
    try {
        still = server.cli({"GET", "a"}).text.starts_with("LOADING");
    } catch (const lab::LabError&) {
    }
    auto waited = client.make_lock("b").value()->acquire({.wait = 60s});
    restarting.join();
    REQUIRE(loading);
    REQUIRE(still);  // all that time
    CHECK(renewed.error() == errc::unavailable);
    CHECK(refused.error() == errc::unavailable);
    CHECK(lease.valid());
    CHECK(waited.has_value());
    CHECK(lease.renew().has_value());
    CHECK(lease.release() == ReleaseResult::released);
}

TEST_CASE("faults: no connection left: said, and who has one goes on") {
    auto server = RedisServer::start();
    auto admin = server.connect();
    Rig first(server.url());
    Try held("a", 60s);
    REQUIRE(first.attempt(held).granted());
    const auto now_connected = admin.command({"INFO", "clients"}).text;
    const auto at = now_connected.find("connected_clients:") + 18;
    REQUIRE(admin
                .command({"CONFIG", "SET", "maxclients",
                          std::to_string(std::stoi(now_connected.substr(at)))})
                .is_ok());
    Rig second(server.url());
    Try other("b");
    second.attempt(other);
    CHECK(other.error() == errc::unavailable);
    CHECK_FALSE(other.in_doubt());
    CHECK_THAT(other.a.detail, ContainsSubstring("max number of clients"));
    CHECK(first.renew(held).renewal == spi::Held::Renewal::renewed);
    CHECK(first.release(held) == ReleaseResult::released);
    REQUIRE(admin.command({"CONFIG", "SET", "maxclients", "100"}).is_ok());
    CHECK(second.attempt(other).granted());
}

TEST_CASE("faults: an evicted key is a loss at the next renewal, and the token goes on") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try held("a", 60s), next("a", 60s);
    REQUIRE(rig.attempt(held).granted());
    const auto used = std::stoll(server.info("memory").at("used_memory"));
    server.cli({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
    server.cli({"CONFIG", "SET", "maxmemory", std::to_string(used + 2'000'000)});
    // The lock is what has a time limit, so it is what goes first.
    for (int i = 0; i < 4000 && server.cli({"EXISTS", "a"}).integer == 1; ++i)
        server.cli({"SET", "stuffing" + std::to_string(i), std::string(10'000, 'x')});
    REQUIRE(server.info("stats").at("evicted_keys") != "0");
    REQUIRE(server.cli({"EXISTS", "a"}).integer == 0);
    const auto h = rig.renew(held);
    CHECK(h.renewal == spi::Held::Renewal::lost);
    CHECK(h.renewal_error == errc::lost);
    CHECK(rig.release(held) == ReleaseResult::already_expired);
    server.cli({"CONFIG", "SET", "maxmemory", "0"});
    REQUIRE(rig.attempt(next).granted());
    CHECK(next.token() > held.token());
}

TEST_CASE("faults: the server's clock jumps: an early end is a loss, and the token grows") {
    lab::TempDir dir;
    lab::WallClock clock(dir / "offset");
    clock.set(0ms);
    RedisOptions options;
    options.environment = clock.environment();
    auto server = RedisServer::start(options);
    const auto jump = [&](milliseconds by) {
        clock.set(by);
        lab::wait_until([&] { return std::chrono::abs(lab::ahead(server) - by) < 2s; }, 5s,
                        "the server's clock jumps");
    };
    // Both have connected, and know the server's clock as it was.
    Rig first(server.url()), second(server.url());
    Try held("a", 10s), warm("b", 10s);
    REQUIRE(first.attempt(held).granted());
    REQUIRE(second.attempt(warm).granted());
    CHECK(second.release(warm) == ReleaseResult::released);
    const auto granted = [&](Rig& rig, Try& t) {
        return lab::reached([&] { return rig.attempt(t).granted(); }, 3s);
    };
    SECTION("ahead") {
        jump(60s);
        CHECK(server.cli({"EXISTS", "a"}).integer == 0);
        Try next("a", 10s);
        REQUIRE(granted(second, next));
        CHECK(next.token() > held.token());
        auto renewal = first.renew(held);
        if (renewal.renewal == spi::Held::Renewal::unknown) renewal = first.renew(held);
        CHECK(renewal.renewal == spi::Held::Renewal::lost);
        CHECK(first.release(held) != ReleaseResult::released);
        CHECK(second.renew(next).renewal == spi::Held::Renewal::renewed);
        CHECK(second.release(next) == ReleaseResult::released);
    }
    SECTION("back") {
        jump(-1h);
        CHECK(server.cli({"PTTL", "a"}).integer > 3'000'000);
        Try next("a", 10s);
        CHECK(second.attempt(next).busy());
        // A renewal puts it right.
        CHECK(first.renew(held).renewal == spi::Held::Renewal::renewed);
        CHECK(server.cli({"PTTL", "a"}).integer <= 10'000);
        CHECK(first.release(held) == ReleaseResult::released);
        REQUIRE(granted(second, next));
        CHECK(next.token() > held.token());
        // What a dead holder left stays for an hour; an operator frees it.
        jump(-2h);
        Try third("a", 10s);
        CHECK(first.attempt(third).busy());
        CHECK(first.break_lock("a", true).has_value());
        REQUIRE(granted(first, third));
        CHECK(third.token() > next.token());
    }
}
