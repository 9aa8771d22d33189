// Redis Cluster with real servers: each name at the server of its slot, slots that move under
// leases, primaries that fail.
#include <algorithm>
#include <atomic>
#include <future>
#include <holdfast/holdfast.hpp>
#include <random>
#include <set>
#include <thread>

#include "cap.hpp"
#include "catch.hpp"
#include "heard.hpp"
#include "holdfast/lab/redis_cluster.hpp"
#include "trial.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using namespace std::chrono_literals;
using hf::errc;
using lab::RedisCluster;
using test_support::cap;
using test_support::Heard;

namespace {

std::unique_ptr<hf::Lock> lock_in(const hf::Client& client, const std::string& name,
                                  const hf::LockOptions& options = {}) {
    return client.make_lock(name, options).value();
}

/// Names in each third of the slots.
std::vector<std::string> names_at_each(const RedisCluster& cluster) {
    std::vector<std::string> names(3);
    for (int i = 0; names[0].empty() || names[1].empty() || names[2].empty(); ++i) {
        const auto name = "name" + std::to_string(i);
        names[cluster.owner(cluster.slot_of(name))] = name;
    }
    return names;
}

lab::RedisClusterOptions with_replicas() {
    lab::RedisClusterOptions o;
    o.replicas = 1;
    o.node_timeout = 1s;
    return o;
}

}  // namespace

TEST_CASE("cluster: each name is locked at the server of its slot", "[cluster]") {
    auto cluster = RedisCluster::start();
    auto client = hf::Client::open(cluster.url()).value();
    const auto names = names_at_each(cluster);
    std::vector<hf::Lease> leases;
    for (const auto& name : names) {
        leases.push_back(lock_in(client, name)->acquire({.wait = 10s}).value());
        CHECK(cluster.cli(name, {"GET", name}).text == leases.back().owner_id());
        CHECK(lock_in(client, name)->acquire({.wait = 0ms}).error() == errc::contended);
        CHECK(client.inspect(name).value().holders.size() == 1);
    }
    auto listed = client.list("name").value();
    auto expected = names;
    std::sort(expected.begin(), expected.end());
    CHECK(listed == expected);
    CHECK(client.list("name", 2).value().size() == 2);

    // By the engine: names at three servers.
    std::vector<hf::Part> wanted;
    for (const auto& name : names)
        wanted.emplace_back(*lock_in(client, "{" + name + "}"));
    auto all = hf::acquire_all(wanted, {.wait = 10s});
    REQUIRE(all.has_value());
    all->release();

    // A waiter is notified by the server that runs the release.
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto other = hf::Client::open(cluster.url() + "?ttl=60s").value();
        const auto lock = lock_in(other, names[i]);
        auto waits = std::async(std::launch::async, [&] { return lock->acquire({.wait = 60s}); });
        lab::wait_until([&] { return other.stats().waiting == 1; }, cap(10s), "it waits");
        CHECK(leases[i].release() == hf::ReleaseResult::released);
        const auto next = waits.get();
        REQUIRE(next.has_value());
        CHECK(next->fencing_token().value > leases[i].fencing_token().value);
    }
    for (const auto* name : {"a}b", "{}x"})
        CHECK(client.make_lock(name).error() == errc::bad_name);
}

TEST_CASE("cluster: a slot that moves keeps its lease, its waiter and its tokens", "[cluster]") {
    auto cluster = RedisCluster::start();
    auto client = hf::Client::open(cluster.url()).value();
    const auto name = names_at_each(cluster)[0];
    const auto slot = cluster.slot_of(name);
    auto lease = lock_in(client, name)->acquire({.wait = 10s}).value();
    Heard heard;
    auto other = hf::Client::open(cluster.url(), {.events = heard.sink()}).value();
    const auto lock = lock_in(other, name);
    auto waits = std::async(std::launch::async, [&] { return lock->acquire({.wait = 60s}); });
    lab::wait_until([&] { return heard.waits(); }, cap(10s), "it waits");

    cluster.begin_move(slot, 1);
    // Neither server can do anything for the name: some of its keys are there, others nowhere.
    hf::Diagnostics words;
    const auto refused = lease.renew();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == errc::unavailable);
    CHECK(lease.valid());
    // A free name of that slot is not granted twice, or at all.
    const auto fresh = "{" + name + "}fresh";
    const auto none = lock_in(client, fresh)->acquire({.wait = 0ms, .diagnostics = &words});
    REQUIRE_FALSE(none.has_value());
    INFO(words.text());
    CHECK(none.error() == errc::unavailable);
    CHECK_THAT(words.text(), ContainsSubstring("moves this name's slot"));

    cluster.end_move(slot, 1);
    REQUIRE(cluster.owner(slot) == 1);
    CHECK(lease.renew().has_value());
    CHECK(cluster.server(1).cli({"GET", name}).text == lease.owner_id());
    CHECK(lease.release() == hf::ReleaseResult::released);
    const auto next = waits.get();
    INFO((next ? "granted" : next.error().message()));
    REQUIRE(next.has_value());
    CHECK(next->fencing_token().value > lease.fencing_token().value);
    CHECK(lock_in(client, fresh)->acquire({.wait = 10s}).has_value());
    // No server was replaced.
    CHECK(client.stats().moves == 0);
}

TEST_CASE("cluster: what a move cuts short in the middle is no loss", "[cluster]") {
    auto cluster = RedisCluster::start();
    auto client = hf::Client::open(cluster.url() + "?ttl=60s&request_timeout=1s").value();
    const auto name = names_at_each(cluster)[0];
    const auto slot = cluster.slot_of(name);
    const std::string written = "{" + name + "}written", closed = "{" + name + "}closed";
    const hf::LockOptions shared{.kind = hf::Kind::shared_mutex};
    const auto writing = lock_in(client, written, shared);
    auto writer = writing->acquire({.wait = 10s}).value();
    const auto closing = lock_in(client, closed, {.kind = shared.kind, .min_hold = 60s});
    auto reader = closing->acquire({.wait = 10s, .mode = hf::Mode::shared}).value();
    // Only where all keys are there a script begins.
    for (const std::string& of : {written, closed}) {
        const auto key = [&](const char* which) { return "{" + name + "}:hf:" + which + ":" + of; };
        cluster.cli(name, {"ZADD", key("q"), "1", "gone"});
        cluster.cli(name, {"HSET", key("w"), "gone", "0 0 "});
        cluster.cli(name, {"ZADD", key("x"), "9000000000000", "gone"});
        cluster.cli(name, {"ZADD", key("r"), "1", "gone"});
    }
    cluster.begin_move(slot, 1);
    CHECK(writer.downgrade().has_value() == false);
    CHECK(cluster.server(0).cli({"GET", written}).text == writer.owner_id());
    CHECK(cluster.server(0).cli({"EXISTS", "{" + name + "}:hf:r:" + written}).is_error());
    CHECK(reader.release() == hf::ReleaseResult::released);
    cluster.end_move(slot, 1);
    CHECK(writer.downgrade().has_value());
    CHECK(writing->acquire({.wait = 0ms}).error() == errc::contended);
    CHECK(closing->acquire({.wait = 0ms}).error() == errc::contended);
}

TEST_CASE("cluster: mode=plain works while a slot is on its way, by ASK", "[cluster]") {
    auto cluster = RedisCluster::start();
    auto client =
        hf::Client::open(cluster.url() + "?mode=plain&ttl=60s&request_timeout=20s").value();
    const auto name = names_at_each(cluster)[0];
    const auto slot = cluster.slot_of(name);
    const auto held = "{" + name + "}held";
    auto kept = lock_in(client, held)->acquire({.wait = 10s}).value();
    cluster.begin_move(slot, 1);
    // One that the former server has stays there; one that it has not is the other one's.
    CHECK(lock_in(client, held)->acquire({.wait = 0ms}).error() == errc::contended);
    hf::Diagnostics words;
    auto lease = lock_in(client, name)->acquire({.wait = 10s, .diagnostics = &words});
    INFO((lease ? "granted" : lease.error().message()) << ' ' << words.text());
    REQUIRE(lease.has_value());
    CHECK(lock_in(client, name)->acquire({.wait = 0ms}).error() == errc::contended);
    CHECK(cluster.server(0).cli({"GET", held}).text == kept.owner_id());
    CHECK(cluster.server(1).cli({"GET", name}).is_error());  // to whoever does not ask
    CHECK(lease->renew().has_value());
    CHECK(kept.renew().has_value());
    // Even where the scripts are forgotten in between.
    cluster.server(1).cli({"SCRIPT", "FLUSH"});
    CHECK(lease->release() == hf::ReleaseResult::released);
    cluster.end_move(slot, 1);
    CHECK(kept.renew().has_value());
    CHECK(kept.release() == hf::ReleaseResult::released);
}

TEST_CASE("cluster: a waiter comes back from a server that it was sent to and that is gone",
          "[cluster]") {
    lab::RedisClusterOptions options;
    options.spare = 1;
    options.node_timeout = 15s;
    auto cluster = RedisCluster::start(options);
    const auto name = names_at_each(cluster)[0];
    const auto slot = cluster.slot_of(name);
    auto client = hf::Client::open(cluster.url() + "?request_timeout=1s").value();
    const auto lock = lock_in(client, name);
    cluster.begin_move(slot, 3);
    cluster.server(3).kill();
    auto waits = std::async(std::launch::async, [&] { return lock->acquire({.wait = 60s}); });
    lab::wait_until([&] { return client.stats().attempts >= 3; }, cap(20s), "it was sent there");
    CHECK(waits.wait_for(0s) == std::future_status::timeout);
    cluster.server(0).cli({"CLUSTER", "SETSLOT", std::to_string(slot), "STABLE"});
    CHECK(waits.wait_for(cap(20s)) == std::future_status::ready);
    CHECK(waits.get().has_value());
}

TEST_CASE("cluster: a thousand leases outlive the move of their slots", "[cluster]") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    lab::RedisClusterOptions options;
    options.spare = 1;
    auto cluster = RedisCluster::start(std::move(options));
    auto client = hf::Client::open(cluster.url()).value();
    auto rival = hf::Client::open(cluster.url()).value();
    std::vector<std::string> names;
    std::vector<hf::Lease> leases;
    std::set<unsigned> slots;
    // Ten in each slot: to move a slot is most of the time that this takes.
    for (int i = 0; i < 1000; ++i) {
        names.push_back("{" + std::to_string(seed % 1000 + static_cast<unsigned>(i) % 100) +
                        "}lease" + std::to_string(i));
        leases.push_back(lock_in(client, names.back())->acquire({.wait = 10s}).value());
        if (i < 100) slots.insert(cluster.slot_of(names.back()));
    }
    // Whoever asks meanwhile gets none of them.
    std::atomic<bool> ended{false};
    std::atomic<int> asked{0}, doubled{0};
    std::thread asks([&] {
        for (std::size_t i = seed; !ended; i += 7) {
            const auto lease = lock_in(rival, names[i % names.size()])->acquire({.wait = 0ms});
            ++asked;
            if (lease) ++doubled;
        }
    });
    for (const unsigned slot : slots) {
        const auto from = cluster.owner(slot);
        cluster.move(slot, from == 3 ? 0 : 3);
    }
    ended = true;
    asks.join();
    std::size_t lost = 0, there = 0;
    auto last = cluster.server(3).connect();
    for (std::size_t i = 0; i < leases.size(); ++i) {
        lost += leases[i].valid() ? 0 : 1;
        there += last.command({"GET", names[i]}).text == leases[i].owner_id() ? 1 : 0;
    }
    CHECK(lost == 0);
    CHECK(there == leases.size());
    CHECK(doubled == 0);
    CHECK(asked > 0);
    CHECK(leases.front().renew().has_value());
    std::size_t released = 0;
    for (auto& lease : leases)
        released += lease.release() == hf::ReleaseResult::released ? 1 : 0;
    CHECK(released == leases.size());
}

TEST_CASE("cluster: a primary is killed: its replica is found, leases and waiters go on",
          "[cluster]") {
    test_support::Trial& trial = test_support::this_trial();
    auto cluster = RedisCluster::start(with_replicas());
    Heard heard;
    hf::ClientOptions options;
    options.events = heard.sink();
    auto client = hf::Client::open(cluster.url(), options).value();
    const auto names = names_at_each(cluster);
    std::vector<hf::Lease> leases;
    for (const auto& name : names)
        leases.push_back(lock_in(client, name)->acquire({.wait = 10s}).value());
    const auto replica = cluster.replica_of(0);
    auto& copy = cluster.server(replica);
    lab::wait_until([&] { return copy.info("keyspace")["db0"].find("keys=") == 0; }, cap(10s),
                    "the replica has it");
    Heard heard_other;
    auto other = hf::Client::open(cluster.url(), {.events = heard_other.sink()}).value();
    const auto wanted = lock_in(other, names[0]);
    auto waits = std::async(std::launch::async, [&] { return wanted->acquire({.wait = 60s}); });
    lab::wait_until([&] { return heard_other.waits(); }, cap(10s), "it waits");

    const auto slot = cluster.slot_of(names[0]);
    cluster.server(0).kill();
    lab::wait_until([&] { return cluster.owner(slot, 1) == replica; }, cap(30s),
                    "the replica takes over");
    const auto took_over = hf::boot_clock::now();
    // Not with the next renewal: it looks until the slots are served again.
    const auto brief = lock_in(client, "{" + names[0] + "}brief")->acquire({.wait = 30s});
    trial.within(hf::boot_clock::now() - took_over, 1s, "the first grant of the new primary");
    REQUIRE(brief.has_value());
    lab::wait_until([&] { return client.stats().moves == 1 && other.stats().moves == 1; }, cap(30s),
                    "both have moved");
    lab::wait_until([&] { return !heard.of(hf::Event::Kind::moved).empty(); }, cap(10s),
                    "the event");
    CHECK(heard.of(hf::Event::Kind::moved).front().text ==
          "from 127.0.0.1:" + std::to_string(cluster.server(0).port()) +
              " to 127.0.0.1:" + std::to_string(copy.port()));
    for (auto& lease : leases)
        CHECK(lease.renew().has_value());
    CHECK(waits.wait_for(0s) == std::future_status::timeout);
    const auto asked = [&] {
        return cluster.server(1).info("commandstats")["cmdstat_cluster|slots"];
    };
    lab::wait_until(
        [&] {
            return lab::stays_true([&, before = asked()] { return asked() == before; }, 2500ms);
        },
        cap(30s), "nobody asks for the slots any more");
    CHECK(leases[0].release() == hf::ReleaseResult::released);
    const auto next = waits.get();
    REQUIRE(next.has_value());
    CHECK(next->fencing_token().value > leases[0].fencing_token().value);
    CHECK(copy.cli({"GET", names[0]}).text == next->owner_id());
}

TEST_CASE("cluster: a lease that the new primary does not know is lost at once", "[cluster]") {
    test_support::Trial& trial = test_support::this_trial();
    auto cluster = RedisCluster::start(with_replicas());
    Heard heard;
    auto client = hf::Client::open(cluster.url() + "?ttl=60s", {.events = heard.sink()}).value();
    const auto name = names_at_each(cluster)[0];
    auto lease = lock_in(client, name)->acquire({.wait = 10s}).value();
    const auto waiting = lock_in(client, name);
    auto waits = std::async(std::launch::async, [&] { return waiting->acquire({.wait = 60s}); });
    lab::wait_until([&] { return heard.waits(); }, cap(10s), "it waits");
    const auto replica = cluster.replica_of(0);
    lab::wait_until(
        [&] {
            return cluster.server(replica).cli({"CLUSTER", "FAILOVER", "TAKEOVER"}).is_ok();
        },
        cap(30s), "the replica takes over");
    // As if that one had not had the last writes.
    cluster.server(replica).cli({"DEL", name});
    const auto start = hf::boot_clock::now();
    lab::wait_until([&] { return lease.lost().stop_requested(); }, cap(30s), "it is told");
    // Not with the next renewal, which would be 20 s later.
    trial.within(hf::boot_clock::now() - start, 5s, "the loss");
    CHECK(waits.get().has_value());
}

TEST_CASE("cluster: most primaries are replaced while a client does not look", "[cluster]") {
    auto cluster = RedisCluster::start(with_replicas());
    const auto names = names_at_each(cluster);
    const auto client =
        hf::Client::open("redis+cluster://127.0.0.1:" + std::to_string(cluster.server(0).port()) +
                         "?ttl=60s")
            .value();
    const auto lease = lock_in(client, names[0])->acquire({.wait = 10s}).value();
    // It knows all three from the first one's word, and need not ask the others.
    for (const std::size_t gone : {1U, 2U}) {
        const auto replica = cluster.replica_of(gone);
        cluster.server(gone).kill();
        lab::wait_until([&] { return cluster.owner(cluster.slot_of(names[gone]), 0) == replica; },
                        cap(30s), "the replica takes over");
    }
    for (const auto& name : names)
        CHECK((name == names[0] || lock_in(client, name)->acquire({.wait = 20s}).has_value()));
    CHECK(lease.valid());
}

TEST_CASE("cluster: one server by itself does not say which has the slots", "[cluster]") {
    auto options = with_replicas();
    options.node_timeout = 10min;  // it takes the others for alive
    auto cluster = RedisCluster::start(std::move(options));
    const auto name = names_at_each(cluster)[0];
    const auto slot = cluster.slot_of(name);
    const auto replica = cluster.replica_of(0);
    auto& former = cluster.server(0);
    former.kill();
    REQUIRE(cluster.server(replica).cli({"CLUSTER", "FAILOVER", "TAKEOVER"}).is_ok());
    lab::wait_until(
        [&] { return cluster.owner(slot, 1) == replica && cluster.owner(slot, 2) == replica; },
        cap(30s), "the replica takes over");
    auto client = hf::Client::open(cluster.url() + "?ttl=60s").value();
    auto rival = hf::Client::open(cluster.url() + "?ttl=60s&request_timeout=1s").value();
    auto lease = lock_in(client, name)->acquire({.wait = 30s}).value();
    REQUIRE(lock_in(rival, name)->acquire({.wait = 0ms}).error() == errc::contended);

    // The former primary comes back to where nobody can tell it.
    for (std::size_t i = 1; i < cluster.size(); ++i)
        cluster.server(i).pause();
    former.restart(lab::Data::keep);
    lab::wait_until(
        [&] {
            return former.cli({"SET", "{" + name + "}x", "1"}).is_ok();
        },
        cap(30s), "it takes the slots for its own");
    const auto got = lock_in(rival, name)->acquire({.wait = 4s});
    REQUIRE_FALSE(got.has_value());
    INFO(got.error().message());
    // One that hangs may have been asked before the deadline, and answer yet.
    CHECK((got.error() == errc::timed_out || got.error() == errc::unavailable ||
           got.error() == errc::in_doubt));
    CHECK(former.cli({"EXISTS", name}).integer == 0);
    for (std::size_t i = 1; i < cluster.size(); ++i)
        cluster.server(i).resume();
    lab::wait_until([&] { return lease.renew().has_value() || !lease.valid(); }, cap(20s),
                    "it is renewed");
    CHECK(lease.release() == hf::ReleaseResult::released);
}

TEST_CASE("cluster: what is wrong is said in words", "[cluster]") {
    auto cluster = RedisCluster::start();
    const auto said = [](const std::string& url, errc code) {
        hf::Diagnostics words;
        auto client = hf::Client::open(url).value();
        const auto lease =
            client.make_lock("x").value()->acquire({.wait = 0ms, .diagnostics = &words});
        if (lease) return std::string("granted");
        INFO(words.text());
        CHECK(lease.error() == code);
        return words.text();
    };
    const auto port = std::to_string(cluster.server(0).port());
    CHECK(said("redis+cluster://127.0.0.1:1,127.0.0.1:" + port, errc::unavailable) == "granted");
    CHECK_THAT(said("redis+cluster://127.0.0.1:1", errc::unavailable),
               ContainsSubstring("127.0.0.1:1"));
    CHECK_THAT(said("redis://127.0.0.1:" + port, errc::not_supported),
               ContainsSubstring("redis+cluster://"));
    const auto single = lab::RedisServer::start();
    CHECK_THAT(
        said("redis+cluster://127.0.0.1:" + std::to_string(single.port()), errc::not_supported),
        ContainsSubstring("cluster-enabled no"));
    CHECK(hf::Client::open("redis+cluster://127.0.0.1:" + port + "/2").error() == errc::bad_config);
    CHECK(hf::Client::open("redis+cluster://127.0.0.1:" + port + "?namespace=a%7D").error() ==
          errc::bad_config);
}

TEST_CASE("cluster: doctor finds what is set up wrong", "[cluster]") {
    lab::RedisClusterOptions options;
    options.node_timeout = 15s;
    auto cluster = RedisCluster::start(std::move(options));
    auto client = hf::Client::open(cluster.url()).value();
    const auto found = [&](std::string_view id) {
        const auto examined = client.examine().value();
        std::string text;
        for (const hf::Finding& f : examined.findings)
            if (f.id == id && f.verdict != hf::Verdict::sound) text += hf::to_text(f) + "\n";
        return text;
    };
    CHECK(client.examine().value().capabilities.safety == hf::SafetyClass::d);
    CHECK_THAT(found("redis.cluster_replica"), ContainsSubstring("no replica"));
    CHECK_THAT(found("redis.full_coverage"), ContainsSubstring("is yes"));
    CHECK_THAT(found("redis.node_timeout"), ContainsSubstring("15000"));
    CHECK(found("redis.moving_slots").empty());
    CHECK(found("redis.slots").empty());
    CHECK(found("redis.cluster_clock").empty());
    for (std::size_t i = 0; i < 3; ++i) {
        cluster.server(i).cli({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
        cluster.server(i).cli({"CONFIG", "SET", "cluster-allow-reads-when-down", "yes"});
        cluster.server(i).cli({"CONFIG", "SET", "cluster-node-timeout", "2000"});
    }
    CHECK(found("redis.full_coverage").empty());
    CHECK(found("redis.node_timeout").empty());
    CHECK_THAT(found("redis.reads_when_down"), ContainsSubstring("is yes"));
    cluster.begin_move(7, 1);
    CHECK_THAT(found("redis.moving_slots"), ContainsSubstring("1 slot is being moved"));
    cluster.end_move(7, 1);
    // All names have one slot, which two of the servers do not have.
    const auto tagged = hf::Client::open(cluster.url() + "?namespace=%7Bapp%7D:").value();
    CHECK(tagged.examine().value().capabilities.safety == hf::SafetyClass::d);
    // No message says that a slot has no server any more.
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(cluster.server(i).cli({"CLUSTER", "DELSLOTS", "8"}).is_ok());
    auto fresh = hf::Client::open(cluster.url()).value();
    lab::wait_until(
        [&] {
            for (const hf::Finding& f : fresh.examine().value().findings)
                if (f.id == "redis.slots" && f.verdict == hf::Verdict::slow) return true;
            fresh = hf::Client::open(cluster.url()).value();
            return false;
        },
        cap(30s), "the gap is found");
    CHECK(found("redis.answers").empty());
    CHECK(found("redis.cluster_state").empty());
    for (std::size_t i = 0; i < 3; ++i)
        cluster.server(i).cli({"CONFIG", "SET", "cluster-require-full-coverage", "yes"});
    cluster.server(2).kill();
    lab::wait_until([&] { return !found("redis.answers").empty(); }, cap(30s), "one is missed");
    CHECK_THAT(found("redis.answers"), ContainsSubstring(std::to_string(cluster.server(2).port())));
    lab::wait_until([&] { return !found("redis.cluster_state").empty(); }, cap(30s),
                    "the others miss it");
    CHECK_THAT(found("redis.cluster_state"), ContainsSubstring("is fail"));
}
