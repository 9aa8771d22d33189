// min_replicas_ack: nothing is believed that the replicas have not heard of.
#include <holdfast/holdfast.hpp>
#include <thread>

#include "cap.hpp"
#include "catch.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"
#include "trial.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using namespace std::chrono_literals;
using hf::errc;
using test_support::cap;

namespace {

/// A primary and its replica, and the wire between them.
struct Pair {
    Pair() {
        lab::wait_until([&] { return primary.replica_acknowledges(); }, lab::default_cap,
                        "the replica is connected");
    }
    static lab::RedisServer start_primary() {
        lab::RedisOptions options;
        options.config = {"repl-diskless-sync-delay 0", "repl-ping-replica-period 1"};
        return lab::RedisServer::start(options);
    }
    lab::RedisServer start_replica() const {
        lab::RedisOptions options;
        options.config = {"replicaof 127.0.0.1 " + std::to_string(between.port())};
        return lab::RedisServer::start(options);
    }
    bool knows(const std::string& name) const { return replica.cli({"EXISTS", name}).integer == 1; }
    bool primary_has(const std::string& name) const {
        return primary.cli({"EXISTS", name}).integer == 1;
    }

    lab::RedisServer primary = start_primary();
    lab::Proxy between{primary.port()};
    lab::RedisServer replica = start_replica();
};

std::unique_ptr<hf::Lock> lock_at(const hf::Client& client, const hf::LockOptions& options = {}) {
    return client.make_lock("name", options).value();
}

hf::Client open(const Pair& pair, const std::string& query) {
    return hf::Client::open(pair.primary.url() + "?" + query).value();
}

}  // namespace

TEST_CASE("min_replicas_ack: what is granted, handed over and renewed is at the replica",
          "[replicas]") {
    for (const std::string mode : {"", "&wait=poll", "&mode=plain"}) {
        INFO("min_replicas_ack=1" << mode);
        Pair pair;
        const auto client = open(pair, "min_replicas_ack=1" + mode);
        const auto lock = lock_at(client);
        auto lease = lock->acquire({.wait = 10s});
        REQUIRE(lease.has_value());
        CHECK(pair.knows("name"));
        CHECK(lease->renew().has_value());
        const auto other = open(pair, "min_replicas_ack=1" + mode);
        hf::result<hf::Lease> next = hf::Lease();
        std::thread waits([&] { next = lock_at(other)->acquire({.wait = 30s}); });
        lab::wait_until([&] { return other.stats().waiting == 1; }, 10s, "it waits");
        CHECK(lease->release() == hf::ReleaseResult::released);
        waits.join();
        REQUIRE(next.has_value());
        CHECK(pair.replica.cli({"GET", "name"}).text == next->owner_id());
        CHECK(next->release() == hf::ReleaseResult::released);
    }
}

TEST_CASE("min_replicas_ack: a grant that no replica has heard of is no grant, and is given back",
          "[replicas]") {
    test_support::Trial& trial = test_support::this_trial();
    for (const std::string mode : {"", "&mode=plain"}) {
        INFO("min_replicas_ack=1" << mode);
        Pair pair;
        const auto careful = open(pair, "ttl=60s&request_timeout=1s&min_replicas_ack=1" + mode);
        const auto trusting = open(pair, "request_timeout=1s" + mode);
        pair.between.black_hole();
        std::string said;
        // The reason is the server's answer; a machine that stalls may let it come too late.
        const auto heard = [&] { return said.find("(min_replicas_ack)") != std::string::npos; };
        for (int i = 0; i < 3 || (i < 12 && !heard()); ++i) {
            const auto start = hf::boot_clock::now();
            hf::Diagnostics words;
            const auto lease = lock_at(careful)->acquire({.wait = 0ms, .diagnostics = &words});
            trial.within(hf::boot_clock::now() - start, 5s, "the refusal");
            REQUIRE_FALSE(lease.has_value());
            INFO(lease.error().message() << ": " << words.text());
            CHECK((lease.error() == errc::in_doubt || lease.error() == errc::unavailable));
            said += words.text();
            lab::wait_until([&] { return !pair.primary_has("name"); }, cap(10s), "given back");
        }
        INFO(said);
        CHECK(heard());
        CHECK_FALSE(pair.knows("name"));
        // Whoever does not ask the replicas gets it, and the replica knows nothing of it.
        auto believed = lock_at(trusting)->acquire({.wait = 0ms});
        REQUIRE(believed.has_value());
        CHECK_FALSE(pair.knows("name"));
        believed->release();
        // Back again, it is granted.
        pair.between.heal();
        const auto again = lock_at(careful)->acquire({.wait = 60s});
        CHECK(again.has_value());
    }
}

TEST_CASE("min_replicas_ack: a lease whose renewals no replica hears of is told before it ends",
          "[replicas]") {
    test_support::Trial& trial = test_support::this_trial();
    Pair pair;
    const auto client = open(pair, "min_replicas_ack=1");
    auto lease = lock_at(client, {.ttl = 2s})->acquire({.wait = 10s}).value();
    const auto before = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals > before; }, 10s, "a renewal");
    REQUIRE(lease.valid());
    pair.between.black_hole();
    const auto cut = hf::boot_clock::now();
    lab::wait_until([&] { return lease.lost().stop_requested(); }, cap(10s), "it is told");
    CHECK_FALSE(lease.valid());
    // Not later than the last renewal that was confirmed can have allowed.
    trial.within(hf::boot_clock::now() - cut, 2500ms, "the answer, from the cut");
    // The server itself renewed it all the while: nobody else got it meanwhile.
    CHECK(pair.between.counters().stalled + pair.between.counters().swallowed_to_client > 0);
}

TEST_CASE("min_replicas_ack: a hand-over waits for the replicas", "[replicas]") {
    Pair pair;
    const auto client = open(pair, "min_replicas_ack=1");
    const auto holder = open(pair, "");
    auto lease = lock_at(holder)->acquire({.wait = 10s}).value();
    std::atomic<bool> granted{false};
    hf::result<hf::Lease> next = hf::Lease();
    std::thread waits([&] {
        next = lock_at(client)->acquire({.wait = 60s});
        granted = true;
    });
    lab::wait_until([&] { return client.stats().waiting == 1; }, 10s, "it waits");
    pair.between.black_hole();
    CHECK(lease.release() == hf::ReleaseResult::released);
    const auto owner = [&] { return pair.primary.cli({"GET", "name"}).text; };
    lab::wait_until([&] { return !owner().empty(); }, 10s, "the primary hands it over");
    CHECK(lab::stays_true([&] { return !granted; }, 700ms));
    pair.between.heal();
    waits.join();
    REQUIRE(next.has_value());
    CHECK(pair.replica.cli({"GET", "name"}).text == next->owner_id());
}

TEST_CASE("min_replicas_ack: a short lease does not spoil the others of its call", "[replicas]") {
    Pair pair;
    redis_tests::Rig rig(pair.primary.url(), "min_replicas_ack=1");
    redis_tests::Try brief("a", 8ms), whole("b", 10s);
    rig.attempt({&brief, &whole});
    INFO(whole.a.detail);
    CHECK(whole.granted());
}
