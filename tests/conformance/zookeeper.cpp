// Cases that only a backend with sessions and a line of nodes has, on one server and on three. On
// three the leader is killed before each test that a change of leader might break.
#include <algorithm>
#include <atomic>
#include <future>
#include <iostream>
#include <set>
#include <thread>

// Version 2 shows its listeners only to whoever asks before the first include.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "heard.hpp"
#include "suite.hpp"
#include "zookeeper_client.hpp"

using namespace suite;
using holdfast::testing::ZooKeeperClient;

namespace {

lab::ZooKeeperServers* servers_or_none() {
    return backend().zookeeper();
}

std::string parent_of(const std::string& name) {
    std::string out = "/holdfast/";
    for (const char c : name)
        out += c == '/' ? std::string("%2F") : std::string(1, c);
    return out;
}

/// Nodes that stand in line, in the order of their sequence.
std::vector<std::string> line_of(ZooKeeperClient& client, const std::string& name) {
    client.sync(parent_of(name));
    auto nodes = client.children(parent_of(name)).children;
    std::erase_if(nodes, [](const std::string& n) { return n.find("lock-") == n.npos; });
    std::sort(nodes.begin(), nodes.end(), [](const std::string& a, const std::string& b) {
        return a.substr(a.rfind('-')) < b.substr(b.rfind('-'));
    });
    return nodes;
}

/// Kills the leader, starts it again, and waits until there is a leader, before each test that a
/// change of leader might break and that is over within seconds.
struct LeaderKiller {
    static bool on() { return std::getenv("HOLDFAST_TEST_KILL_LEADER") != nullptr; }
    static void before_test(const Catch::TestCaseInfo& test) {
        auto* servers = on() ? servers_or_none() : nullptr;
        if (servers == nullptr || servers->size() < 3) return;
        const std::set<std::string> wanted{"basics", "exclusion", "fifo", "T2",  "T4",  "T10",
                                           "T15",    "T17",       "T20",  "T22", "T33", "T34"};
        const bool one = std::any_of(test.tags.begin(), test.tags.end(), [&](const auto& tag) {
#if __has_include(<catch2/catch_all.hpp>)
            return wanted.contains(std::string(tag.original));
#else
            return wanted.contains(tag);
#endif
        });
        if (!one) return;
        const auto killed = servers->kill_leader();
        if (servers->alive(killed)) throw std::runtime_error("the leader was not killed");
        servers->restart(killed);
        servers->wait_ready();
        ++kills;
    }
    static inline int kills = 0;
};

#if __has_include(<catch2/catch_all.hpp>)
struct Killing : Catch::EventListenerBase {
    using EventListenerBase::EventListenerBase;
    void testCaseStarting(const Catch::TestCaseInfo& test) override {
        LeaderKiller::before_test(test);
    }
};
#else
struct Killing : Catch::TestEventListenerBase {
    using TestEventListenerBase::TestEventListenerBase;
    void testCaseStarting(const Catch::TestCaseInfo& test) override {
        LeaderKiller::before_test(test);
    }
};
#endif
CATCH_REGISTER_LISTENER(Killing)

/// Servers that have just begun may take longer for their first answer than one request may.
hf::Lease hold_at_last(hf::Lock& lock) {
    hf::result<hf::Lease> got = hf::Lease();
    const auto answered = [&] {
        got = lock.acquire({.wait = 10s});
        return got || (got.error() != errc::unavailable && got.error() != errc::in_doubt);
    };
    lab::wait_until(answered, cap(10s), "the servers answer");
    INFO((got ? std::string() : got.error().message()));
    REQUIRE(got.has_value());
    return std::move(*got);
}

}  // namespace

TEST_CASE("T2: a node of the old session is never adopted, and waited for", "[T2]") {
    Trial& trial = this_trial();
    auto* servers = servers_or_none();
    auto* proxy = backend().proxy();
    if (servers == nullptr || proxy == nullptr) return;
    const auto name = fresh_name("old-session");
    ZooKeeperClient plain(servers->connect_string());
    const auto client = open_proxied("ttl=3s");
    const auto lock = lock_of(client, name);
    auto lease = hold(*lock);
    const auto token = lease.fencing_token();
    const auto old_line = line_of(plain, name);
    REQUIRE(old_line.size() == 1);
    const auto old_node = plain.get(parent_of(name) + "/" + old_line[0]);
    proxy->black_hole();
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "the loss");
    // The server keeps the session a little longer than its client believes in it, which only a
    // look in time can see.
    const bool there = plain.get(parent_of(name) + "/" + old_line[0]).rc == ZOK;
    trial.holds(there, 200ms, "the server keeps the node a little longer");
    proxy->cut_all();
    proxy->heal();
    auto next = hold(*lock);
    const auto new_line = line_of(plain, name);
    REQUIRE(new_line.size() == 1);  // the old one is gone
    CHECK(new_line[0] != old_line[0]);
    const auto new_node = plain.get(parent_of(name) + "/" + new_line[0]);
    CHECK(new_node.stat.ephemeralOwner != old_node.stat.ephemeralOwner);
    CHECK(next.fencing_token() > token);
    CHECK(next.fencing_token().value == static_cast<std::uint64_t>(new_node.stat.czxid));
    CHECK_FALSE(lease.valid());
    CHECK(lease.release() != hf::ReleaseResult::released);
    CHECK(next.renew().has_value());
    next.release();
    require_clean(name);
}

TEST_CASE("T4: a waiter whose node or session ended stands in line again", "[T4]") {
    auto* servers = servers_or_none();
    if (servers == nullptr) return;
    const auto name = fresh_name("place");
    const auto wait_for_line = [&](std::size_t n) {
        lab::wait_until([&] { return waiters_of(name) == n; }, 10s, "in line");
    };
    SECTION("its node is deleted by somebody") {
        ZooKeeperClient plain(servers->connect_string());
        auto holder = hold(*lock_of(open(), name));
        const auto client = open();
        hf::result<hf::Lease> got = hf::Lease();
        std::thread waiting([&] { got = lock_of(client, name)->acquire({.wait = 20s}); });
        wait_for_line(1);
        const auto before = line_of(plain, name);
        REQUIRE(before.size() == 2);
        CHECK(plain.remove(parent_of(name) + "/" + before[1]).rc == ZOK);
        lab::wait_until(
            [&] {
                const auto now_there = line_of(plain, name);
                return now_there.size() == 2 && now_there[1] != before[1];
            },
            10s, "a new place");
        holder.release();
        waiting.join();
        REQUIRE(got.has_value());
        CHECK(got->valid());
    }
    SECTION("every session ends") {
        auto holder = hold(*lock_of(open("ttl=2s&request_timeout=2s"), name));
        test_support::Heard heard;
        hf::ClientOptions options;
        options.events = heard.sink();
        const auto client = open("ttl=2s&request_timeout=2s", options);
        hf::result<hf::Lease> got = hf::Lease();
        std::thread waiting([&] { got = lock_of(client, name)->acquire({.wait = 30s}); });
        lab::wait_until([&] { return heard.waits(); }, cap(10s), "in line, and told so");
        servers->restart_all(lab::Data::fresh);
        waiting.join();
        INFO((got ? std::string() : got.error().message()));
        REQUIRE(got.has_value());
        CHECK(got->valid());
        lab::wait_until([&] { return !holder.valid(); }, 10s, "the old holder is told");
    }
    require_clean(name);
}

TEST_CASE("T10: one deadline over ten predecessors", "[T10]") {
    Trial& trial = this_trial();
    auto* servers = servers_or_none();
    if (servers == nullptr) return;
    const auto name = fresh_name("deadline");
    const auto parent = parent_of(name);
    ZooKeeperClient plain(servers->connect_string());
    plain.create("/holdfast", "", ZOO_PERSISTENT);
    plain.create(parent, "", ZOO_CONTAINER);
    std::vector<std::string> nodes;
    for (int i = 0; i < 10; ++i) {
        const auto made = plain.create(
            parent + "/_c_00000000-0000-4000-8000-00000000000" + std::to_string(i) + "-lock-",
            "somebody", ZOO_EPHEMERAL_SEQUENTIAL);
        REQUIRE(made.rc == ZOK);
        nodes.push_back(made.text);
    }
    const auto client = open();
    std::atomic<bool> ended{false};
    const auto start = now();
    hf::result<hf::Lease> got = hf::Lease();
    std::thread waiting([&] {
        got = lock_of(client, name)->acquire({.wait = 1500ms});
        ended = true;
    });
    // Seven of them go one after the other, each a step; three stay. A slow machine manages fewer.
    int steps = 0;
    while (steps < 7 && lab::stays_true([&] { return !ended; }, 150ms)) {
        CHECK(plain.remove(nodes[static_cast<std::size_t>(steps)]).rc == ZOK);
        ++steps;
    }
    waiting.join();
    CHECK(got.error() == errc::timed_out);
    CHECK(ms(now() - start) >= 1499);
    trial.within(now() - start, 1900ms, "the end of a wait of 1500 ms");
    CHECK(steps >= 2);
    for (const auto& node : nodes)
        plain.remove(node);
    require_clean(name);
}

TEST_CASE("T11: a missed wake-up costs at most min(ttl/3, 1 s), with a watch as well", "[T11]") {
    Trial& trial = this_trial();
    auto* proxy = backend().proxy();
    if (servers_or_none() == nullptr || proxy == nullptr) return;
    const auto name = fresh_name("missed");
    for (int i = 0; i < 3; ++i) {
        auto holder = hold(*lock_of(open(), name));
        const auto client = open_proxied();
        hf::result<hf::Lease> got = hf::Lease();
        hf::boot_clock::time_point granted;
        std::thread waiting([&] {
            got = lock_of(client, name)->acquire({.wait = 20s});
            granted = now();
        });
        lab::wait_until([&] { return waiters_of(name) == 1; }, 5s, "it waits");
        proxy->cut_all();
        const auto released = now();
        holder.release();
        waiting.join();
        REQUIRE(got.has_value());
        trial.within(granted - released, 1500ms, "the grant after a missed wake-up");
        got->release();
    }
    require_clean(name);
}

TEST_CASE("T15: tokens grow over killed servers and a parent that was deleted", "[T15]") {
    auto* servers = servers_or_none();
    if (servers == nullptr) return;
    const auto name = fresh_name("token-kill");
    const auto client = open("ttl=2s&request_timeout=2s");
    const auto lock = lock_of(client, name);
    hf::FencingToken last;
    for (int i = 0; i < 2; ++i) {
        auto lease = hold_at_last(*lock);
        CHECK(lease.fencing_token() > last);
        last = lease.fencing_token();
        servers->restart_all(lab::Data::keep);
        lease = {};
    }
    auto lease = hold_at_last(*lock);
    CHECK(lease.fencing_token() > last);
    last = lease.fencing_token();
    lease.release();
    CHECK(backend().erase_behind(name));  // and with it the sequence
    auto after = hold(*lock);
    CHECK(after.fencing_token() > last);
    after.release();
    require_clean(name);
}

TEST_CASE("T17: order is by sequence alone, foreign nodes are ignored, no node means lost",
          "[T17]") {
    auto* servers = servers_or_none();
    if (servers == nullptr) return;
    const auto name = fresh_name("sequence");
    const auto parent = parent_of(name);
    ZooKeeperClient plain(servers->connect_string());
    plain.create("/holdfast", "", ZOO_PERSISTENT);
    plain.create(parent, "", ZOO_CONTAINER);
    for (const char* foreign : {"readme", "lock-", "x-0000000001", "_c_-lock-", "lock-12345678901x",
                                "0000000000", "_c_zz-lease-0000000000"})
        CHECK(plain.create(parent + "/" + foreign, "", ZOO_PERSISTENT).rc == ZOK);
    // Names that sort the wrong way round, ahead of ours: another library's, and kazoo's.
    const auto first = plain.create(parent + "/_c_ffffffff-ffff-4fff-8fff-ffffffffffff-lock-",
                                    "10.0.0.1", ZOO_EPHEMERAL_SEQUENTIAL);
    const auto second = plain.create(parent + "/ffffffffffffffffffffffffffffffff__lock__", "kazoo",
                                     ZOO_EPHEMERAL_SEQUENTIAL);
    REQUIRE(second.rc == ZOK);
    const auto client = open("ttl=6s");
    const auto lock = lock_of(client, name);
    CHECK(lock->try_acquire().error() == errc::contended);
    const auto seen = client.inspect(name);
    REQUIRE(seen.has_value());
    REQUIRE(seen->holders.size() == 1);
    CHECK(seen->holders[0].foreign);
    CHECK(seen->holders[0].note == "10.0.0.1");
    CHECK(seen->waiters.size() == 1);
    CHECK(client.break_lock(name).error() == errc::not_supported);
    hf::result<hf::Lease> got = hf::Lease();
    std::thread waiting([&] { got = lock->acquire({.wait = 20s}); });
    lab::wait_until([&] { return waiters_of(name) == 2; }, 20s, "in line");
    // A later one whose name sorts before all others.
    const auto later = plain.create(parent + "/_c_00000000-0000-4000-8000-000000000000-lock-", "",
                                    ZOO_EPHEMERAL_SEQUENTIAL);
    plain.remove(first.text);
    CHECK(lab::stays_true([&] { return client.stats().held == 0; }, 200ms));
    plain.remove(second.text);
    waiting.join();
    REQUIRE(got.has_value());
    CHECK(got->valid());
    CHECK(later.rc == ZOK);
    // Somebody deletes everything: an empty list is a loss, not a grant.
    for (const auto& node : plain.children(parent).children)
        plain.remove(parent + "/" + node);
    lab::wait_until([&] { return got->lost().stop_requested(); }, 5s, "the loss");
    CHECK(got->lost_reason() == errc::lost);
    CHECK_FALSE(got->valid());
    require_clean(name);
}

TEST_CASE("T22: a node that cannot have a line is refused and left alone", "[T22]") {
    auto* servers = servers_or_none();
    if (servers == nullptr) return;
    const auto name = fresh_name("stranger");
    ZooKeeperClient plain(servers->connect_string());
    plain.create("/holdfast", "", ZOO_PERSISTENT);
    REQUIRE(plain.create(parent_of(name), "not a lock", ZOO_EPHEMERAL).rc == ZOK);
    const auto lock = lock_of(open(), name);
    CHECK(lock->try_acquire().error() == errc::kind_mismatch);
    CHECK(lock->acquire({.wait = 5s}).error() == errc::kind_mismatch);
    CHECK(plain.get(parent_of(name)).text == "not a lock");
    CHECK(plain.remove(parent_of(name)).rc == ZOK);
    CHECK(hold(*lock).valid());
    require_clean(name);
}

TEST_CASE("T34: a rolling restart with leases held and waiters queued", "[T34]") {
    auto* servers = servers_or_none();
    if (servers == nullptr) return;
    const auto name = fresh_name("rolling");
    const auto client = open("ttl=60s");
    const auto waiting_client = open("ttl=60s");
    auto lease = hold(*lock_of(client, name));
    auto other = hold(*lock_of(client, name + "-2"));
    std::mutex mutex;
    std::vector<int> order;
    std::atomic<int> ended{0};
    constexpr int n = 5;
    const auto lock = lock_of(waiting_client, name);
    for (int i = 0; i < n; ++i) {
        lock->async_acquire({.wait = 120s}, [&, i](hf::error_code ec, hf::Lease l) {
            {
                const std::lock_guard hold_it(mutex);
                order.push_back(ec ? -1 : i);
            }
            l.release();
            ++ended;
        });
        lab::wait_until([&] { return waiters_of(name) == static_cast<std::size_t>(i) + 1; }, 10s,
                        "in line");
    }
    // Answered after what they asked before: from here on they wait for as long as they said.
    CHECK(waiting_client.inspect(name).has_value());
    for (std::size_t i = 0; i < servers->size(); ++i) {
        servers->kill(i);
        CHECK_FALSE(servers->alive(i));
        servers->restart(i);
        servers->wait_ready();
        // Nobody else is granted while the holder believes.
        CHECK((ended == 0 || !lease.valid()));
    }
    for (const hf::Lease* l : {&lease, &other}) {
        const bool told = l->lost().stop_requested();
        CHECK(l->valid() != told);
        if (l->valid()) CHECK(now() < l->valid_until());
    }
    lab::wait_until([&] { return lease.renew().has_value() || !lease.valid(); }, 60s,
                    "a renewal, or the loss");
    const bool survived = lease.valid() && ended == 0;
    std::cout << backend().name() << ": T34 the leases " << (survived ? "survived" : "were told")
              << "\n";
    lease.release();
    other.release();
    lab::wait_until([&] { return ended == n; }, cap(60s), "all are served");
    // Who kept his place is served in order; a machine that takes longer than a session to restart
    // three servers makes them stand in line anew, and serves them all the same.
    if (survived) CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
    CHECK(std::count(order.begin(), order.end(), -1) == 0);
    require_clean(name);
}

TEST_CASE("the leader was killed before each test, where that was asked for", "[T34]") {
    if (!LeaderKiller::on()) return;
    REQUIRE(servers_or_none() != nullptr);
    std::cout << backend().name() << ": the leader was killed " << LeaderKiller::kills
              << " times\n";
    CHECK(LeaderKiller::kills > 0);
}
