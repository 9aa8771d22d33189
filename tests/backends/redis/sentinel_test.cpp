// Redis that fails over: the primary that Sentinels name is followed, a lease is renewed there or
// lost, and a former primary's word does not count.
#include <fstream>
#include <future>
#include <holdfast/holdfast.hpp>
#include <mutex>
#include <thread>

#include "cap.hpp"
#include "catch.hpp"
#include "examined.hpp"
#include "heard.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/redis_set.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "trial.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using namespace std::chrono_literals;
using hf::errc;
using lab::RedisSet;
using test_support::cap;
using test_support::Heard;

namespace {

std::unique_ptr<hf::Lock> lock_of(const hf::Client& client, const std::string& name,
                                  const hf::LockOptions& options = {}) {
    return client.make_lock(name, options).value();
}

/// The wires between a client and the Sentinels.
class Between {
public:
    explicit Between(const RedisSet& set) {
        for (const auto port : set.sentinel_ports())
            all_.emplace_back(port);
    }
    std::vector<std::uint16_t> ports() const {
        std::vector<std::uint16_t> out;
        for (const auto& one : all_)
            out.push_back(one.port());
        return out;
    }
    void black_hole(std::size_t of) {
        for (std::size_t i = 0; i < of; ++i)
            all_[i].black_hole();
    }
    void heal() {
        for (auto& one : all_)
            one.heal();
    }

private:
    std::vector<lab::Proxy> all_;
};

}  // namespace

TEST_CASE("sentinel: a switch is followed: leases are renewed there, a waiter goes on",
          "[sentinel]") {
    auto set = RedisSet::start();
    Heard heard;
    hf::ClientOptions options;
    options.events = heard.sink();
    auto client = hf::Client::open(set.url(), options).value();
    const auto lock = lock_of(client, "held");
    auto lease = lock->acquire({.wait = 30s}).value();
    // Until the replicas have it, a switch may lose it.
    for (std::size_t i = 1; i < set.size(); ++i)
        lab::wait_until(
            [&] {
                return set.server(i).cli({"EXISTS", "held"}).integer == 1;
            },
            10s, "the replica has it");
    Heard heard_other;
    auto other = hf::Client::open(set.url(), {.events = heard_other.sink()}).value();
    const auto wanted = lock_of(other, "held");
    auto waits = std::async(std::launch::async, [&] { return wanted->acquire({.wait = 60s}); });
    lab::wait_until([&] { return heard_other.waits(); }, cap(10s), "it waits");

    const auto served_by = [&] { return client.inspect("held").value().server; };
    CHECK(served_by() == "127.0.0.1:" + std::to_string(set.announced(set.primary())));
    CHECK(set.ask_sentinel(0, {"CLIENT", "LIST"}).text.find("name=holdfast ") != std::string::npos);

    const auto former = set.fail_over();
    set.wait_replaced(former, cap(60s));
    lab::wait_until([&] { return client.stats().moves == 1 && other.stats().moves == 1; }, cap(30s),
                    "both have moved");
    const auto now = set.primary();
    CHECK(now != former);
    lab::wait_until([&] { return !heard.of(hf::Event::Kind::moved).empty(); }, cap(10s),
                    "the event");
    CHECK(heard.of(hf::Event::Kind::moved).front().text ==
          "from 127.0.0.1:" + std::to_string(set.announced(former)) +
              " to 127.0.0.1:" + std::to_string(set.announced(now)));
    CHECK(lease.renew().has_value());
    CHECK(lease.valid());
    CHECK(served_by() == "127.0.0.1:" + std::to_string(set.announced(now)));
    CHECK(waits.wait_for(0s) == std::future_status::timeout);
    CHECK(lease.release() == hf::ReleaseResult::released);
    const auto next = waits.get();
    REQUIRE(next.has_value());
    CHECK(next->fencing_token().value > lease.fencing_token().value);
    CHECK(set.server(now).cli({"GET", "held"}).text == next->owner_id());
}

TEST_CASE("sentinel: a lease that the new primary does not know is lost at once", "[sentinel]") {
    test_support::Trial& trial = test_support::this_trial();
    auto set = RedisSet::start();
    Between between(set);
    auto client = hf::Client::open(set.url(between.ports()) + "?ttl=60s").value();
    const auto lock = lock_of(client, "held");
    auto lease = lock->acquire({.wait = 30s}).value();
    // No message reaches it, so it finds out by itself.
    between.black_hole(3);
    const auto former = set.fail_over();
    set.wait_replaced(former, cap(60s));
    lab::wait_until([&] { return set.primary(1) != former; }, cap(30s), "another is the primary");
    // As if that one had not had the last writes.
    set.server(set.primary(1)).cli({"DEL", "held"});
    CHECK(lease.valid());
    between.heal();
    lab::wait_until([&] { return client.stats().moves == 1; }, cap(20s), "it moves");
    const auto start = hf::boot_clock::now();
    lab::wait_until([&] { return lease.lost().stop_requested(); }, cap(20s), "it is told");
    // Not with the next renewal, which would be 20 s later.
    trial.within(hf::boot_clock::now() - start, 3s, "the loss");
    CHECK_FALSE(lease.valid());
}

TEST_CASE("sentinel: what no majority confirms ends with its ttl, whatever a server says",
          "[sentinel]") {
    test_support::Trial& trial = test_support::this_trial();
    auto set = RedisSet::start();
    Between between(set);
    const auto url = set.url(between.ports()) + "?ttl=3s&request_timeout=1s";
    auto client = hf::Client::open(url).value();
    const auto lock = lock_of(client, "held");
    auto lease = lock->acquire({.wait = 30s}).value();
    auto believer = hf::Client::open(url + "&confirm=no").value();
    auto believed = lock_of(believer, "believed")->acquire({.wait = 30s}).value();
    // One of three is left, and the server answers all the while.
    between.black_hole(2);
    const auto cut = hf::boot_clock::now();
    lab::wait_until([&] { return lease.lost().stop_requested(); }, cap(20s), "it is told");
    trial.within(hf::boot_clock::now() - cut, 3500ms, "the loss");
    // Granted by the server, and counted by nobody.
    hf::Diagnostics words;
    const auto refused = lock_of(client, "more")->acquire({.wait = 3s, .diagnostics = &words});
    REQUIRE_FALSE(refused.has_value());
    INFO(refused.error().message() << ": " << words.text());
    CHECK((refused.error() == errc::in_doubt || refused.error() == errc::unavailable));
    CHECK_THAT(words.text(), ContainsSubstring("majority of the Sentinels"));
    lab::wait_until(
        [&] {
            return set.server(0).cli({"EXISTS", "more"}).integer == 0;
        },
        cap(10s), "it is given back");
    CHECK(believed.valid());
    CHECK(set.server(0).info("replication").at("role") == "master");
    between.heal();
    const auto again = lock->acquire({.wait = 30s});
    CHECK(again.has_value());
}

TEST_CASE("sentinel: a killed and a hung primary: a waiter waits on", "[sentinel]") {
    auto set = RedisSet::start();
    auto client = hf::Client::open(set.url() + "?request_timeout=500ms&ttl=3s").value();
    {
        auto lease = lock_of(client, "first")->acquire({.wait = 30s});
        REQUIRE(lease.has_value());
    }
    for (const bool hung : {false, true}) {
        INFO((hung ? "hung" : "killed"));
        const auto former = set.primary();
        if (hung)
            set.server(former).pause();
        else
            set.server(former).kill();
        // Longer than many request time-outs.
        hf::Diagnostics words;
        const auto lease = lock_of(client, "next")->acquire({.wait = 60s, .diagnostics = &words});
        INFO(words.text());
        REQUIRE(lease.has_value());
        CHECK(set.primary() != former);
        if (hung)
            set.server(former).resume();
        else
            set.server(former).restart();
        set.wait_settled(cap(60s));
        CHECK(lease->valid());
    }
}

TEST_CASE("sentinel: a blocking call follows too", "[sentinel]") {
    auto set = RedisSet::start();
    auto client = hf::Client::open(set.url()).value();
    const auto lock = lock_of(client, "brief");
    const auto cycle = [&] {
        auto lease = lock->acquire({.wait = 30s});
        REQUIRE(lease.has_value());
        const bool there =
            set.server(set.primary()).cli({"GET", "brief"}).text == lease->owner_id();
        CHECK(lease->release() == hf::ReleaseResult::released);
        return there;
    };
    for (int i = 0; i < 3; ++i)
        CHECK(cycle());
    const auto former = set.fail_over();
    set.wait_replaced(former, cap(60s));
    lab::wait_until([&] { return client.stats().moves == 1; }, cap(30s), "it has moved");
    REQUIRE(set.primary() != former);
    // The former primary still takes writes for seconds: a lane that stayed there would be served.
    for (int i = 0; i < 3; ++i)
        CHECK(cycle());
}

TEST_CASE("sentinel: what is wrong is said in words", "[sentinel]") {
    lab::RedisSetOptions options;
    options.server.password = "data-word";
    options.sentinel_password = "sentinel-word";
    auto set = RedisSet::start(std::move(options));
    lab::TempDir dir;
    const auto file = dir / "password";
    std::ofstream(file) << "sentinel-word\n";
    const auto said = [](const std::string& url, errc code) {
        hf::Diagnostics words;
        auto client = hf::Client::open(url).value();
        const auto lease = lock_of(client, "x")->acquire({.wait = 0ms, .diagnostics = &words});
        if (lease) return std::string("granted");
        INFO(words.text());
        CHECK(lease.error() == code);
        CHECK(words.text().find("-word") == std::string::npos);
        return words.text();
    };
    const std::string with = "?sentinel_password_file=" + file.string();
    CHECK(said(set.url() + with, errc::denied) == "granted");
    CHECK_THAT(said(set.url(), errc::denied),
               ContainsSubstring("the server asks for a password, and the configuration has none"));
    auto other = set.url();
    other.replace(other.find("/mymaster"), 9, "/nobody");
    CHECK_THAT(said(other + with, errc::bad_config),
               ContainsSubstring("watches no primary named \"nobody\""));
    const auto port = std::to_string(set.sentinel_ports()[0]);
    CHECK_THAT(said("redis://127.0.0.1:" + std::to_string(set.server(1).port()), errc::denied),
               ContainsSubstring("password"));
    CHECK_THAT(said("redis+sentinel://127.0.0.1:1,127.0.0.1:2/mymaster", errc::unavailable),
               ContainsSubstring("127.0.0.1:2"));
    // A replica by its own address.
    auto reply = said("redis://:data-word@127.0.0.1:" + std::to_string(set.server(1).port()),
                      errc::unavailable);
    CHECK_THAT(reply, ContainsSubstring("replica; give the URL of its primary"));
    // A Sentinel by itself.
    CHECK_THAT(said("redis://:sentinel-word@127.0.0.1:" + port, errc::not_supported),
               ContainsSubstring("redis+sentinel://"));
    CHECK_THAT(
        said("redis://:sentinel-word@127.0.0.1:" + port + "?mode=plain", errc::not_supported),
        ContainsSubstring("this is a Sentinel"));
}

TEST_CASE("sentinel: a URL that cannot be meant is refused", "[sentinel]") {
    const auto refused = [](const std::string& url) {
        hf::Diagnostics words;
        CHECK_FALSE(hf::Client::open(url, {.diagnostics = &words}).has_value());
        return words.text();
    };
    CHECK_THAT(refused("redis+sentinel://a,b,c"), ContainsSubstring("path"));
    CHECK_THAT(refused("redis+sentinel://a,b,c/mymaster/x"), ContainsSubstring("mymaster/2"));
    CHECK_THAT(refused("redis+sentinel://a,b,c/mymaster?sentinel_user=x"),
               ContainsSubstring("sentinel_password_file"));
    CHECK_THAT(refused("redis+sentinel://a,b,c/mymaster?sentinel_tls=no"),
               ContainsSubstring("rediss+sentinel"));
    CHECK_THAT(refused("redis+sentinel://a,b,c/mymaster?handover=direct"),
               ContainsSubstring("handover"));
    CHECK_THAT(refused("redis://a?confirm=no"), ContainsSubstring("confirm"));
    CHECK(hf::Client::open("redis+sentinel://a,b:1,c/mymaster/2").has_value());
}

TEST_CASE("sentinel: doctor is silent on a right set, and speaks on each wrong one", "[sentinel]") {
    lab::RedisSetOptions options;
    options.server.append_only = true;
    options.server.config = {"min-replicas-to-write 1"};
    auto set = RedisSet::start(std::move(options));
    const auto right = redis_tests::not_sound(set.url());
    for (const auto& [id, words] : right)
        UNSCOPED_INFO(id << " " << words);
    CHECK(right.empty());

    // Leases that end before a failover begins, and a majority of the listed that is none of all.
    CHECK(redis_tests::not_sound(set.url() + "?ttl=1s&request_timeout=1s")
              .count("redis.down_after") == 3);
    const auto& ports = set.sentinel_ports();
    const auto two = redis_tests::not_sound(set.url({ports[0], ports[1]}));
    CHECK(two.count("redis.sentinels") == 1);
    CHECK(two.count("redis.listed") == 2);

    set.server(0).cli({"CONFIG", "SET", "min-replicas-to-write", "0"});
    set.ask_sentinel(0, {"SENTINEL", "SET", RedisSet::name, "quorum", "3"});
    set.sentinel(2).pause();
    // As behind a NAT: nobody can connect to what it announces.
    set.server(2).cli({"CONFIG", "SET", "replica-announce-port", "1"});
    set.server(0).cli({"CLIENT", "KILL", "TYPE", "replica"});
    const auto announces = [&](const char* key) {
        const auto all = set.server(0).info("replication");
        const auto at = all.find(key);
        return at != all.end() && at->second.find("port=1,state=online") != std::string::npos;
    };
    lab::wait_until([&] { return announces("slave0") || announces("slave1"); }, cap(20s),
                    "the replica is back");
    const auto all = redis_tests::not_sound(set.url());
    for (const char* id : {"redis.split", "redis.quorum", "redis.sentinel", "redis.announced"}) {
        INFO(id);
        CHECK(all.count(id) == 1);
    }
    CHECK_THAT(all.find("redis.announced")->second, ContainsSubstring("replica 127.0.0.1:1"));
}

TEST_CASE("sentinel: a password file that every user may read is warned of", "[sentinel]") {
    const lab::TempDir folder;
    const auto file = folder / "password";
    std::ofstream(file) << "word\n";
    std::filesystem::permissions(file, std::filesystem::perms(0644));
    Heard heard;
    hf::ClientOptions options;
    options.events = heard.sink();
    const auto client = hf::Client::open(
        "redis+sentinel://127.0.0.1:1/mymaster?sentinel_password_file=" + file.string(), options);
    REQUIRE(client.has_value());
    lab::wait_until([&] { return heard.says("may be read by every user"); }, cap(10s),
                    "the warning");
}
