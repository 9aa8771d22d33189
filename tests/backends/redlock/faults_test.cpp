// Single nodes that answer, and are of no use all the same: they refuse, or their clock jumps.
#include <thread>

#include "five.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wall_clock.hpp"

using namespace redlock_tests;

namespace {

/// Five nodes whose wall clocks a test moves.
struct Clocks {
    explicit Clocks(std::size_t n = 5) {
        for (std::size_t i = 0; i < n; ++i) {
            clocks.push_back(std::make_unique<lab::WallClock>(dir / std::to_string(i)));
            clocks.back()->set(0ms);
            RedisOptions options;
            options.environment = clocks.back()->environment();
            nodes.push_back(std::make_unique<RedisServer>(RedisServer::start(options)));
            url += (i > 0 ? ",127.0.0.1:" : "127.0.0.1:") + std::to_string(nodes[i]->port());
        }
    }
    void jump(std::size_t i, hf::milliseconds by) {
        clocks[i]->set(by);
        lab::wait_until([&] { return std::chrono::abs(lab::ahead(*nodes[i]) - by) < 2s; }, 5s,
                        "the node's clock jumps");
    }
    /// By so much, and once more where a renewal that was under way has put right at once what it
    /// did to the key.
    template <class Felt>
    void jump(hf::milliseconds by, Felt felt) {
        lab::wait_until(
            [&] {
                jump(0, first_ += by);
                return felt(left(0));
            },
            10s, "the jump is felt");
    }
    long long left(std::size_t i) { return nodes[i]->cli({"PTTL", "name"}).integer; }
    lab::TempDir dir;
    std::vector<std::unique_ptr<lab::WallClock>> clocks;
    std::vector<std::unique_ptr<RedisServer>> nodes;
    std::string url = "redlock://";
    hf::milliseconds first_{0};
};

/// A lease that all five nodes have: a majority is enough for a grant, and a node whose connection
/// is not ready by then does not get to hear of it.
hf::Lease hold_at_all(hf::Lock& lock, Five& five) {
    hf::Lease lease;
    lab::wait_until(
        [&] {
            lease = hold(lock);
            if (lab::reached([&] { return five.holding("name") == 5; }, 200ms)) return true;
            lease.release();
            return false;
        },
        cap(10s), "all five vote");
    return lease;
}

}  // namespace

TEST_CASE("faults: a node that refuses writes counts as missing, and no more") {
    struct Refusal {
        const char* word;
        std::vector<std::string> make, end;
    };
    const Refusal refusals[] = {
        {"READONLY", {"REPLICAOF", "127.0.0.1", "1"}, {"REPLICAOF", "NO", "ONE"}},
        {"OOM", {"CONFIG", "SET", "maxmemory", "1"}, {"CONFIG", "SET", "maxmemory", "0"}},
        {"NOREPLICAS",
         {"CONFIG", "SET", "min-replicas-to-write", "1"},
         {"CONFIG", "SET", "min-replicas-to-write", "0"}}};
    Five five;
    const auto client = open(five.url("durable=yes&node_timeout=1s&ttl=20s"));
    const auto lock = lock_of(client, "name");
    hf::FencingToken last;
    for (const Refusal& r : refusals) {
        INFO(r.word);
        auto lease = hold_at_all(*lock, five);
        CHECK(lease.fencing_token() > last);
        last = lease.fencing_token();
        const auto refuse = [&](std::size_t i) {
            five[i].cli(r.make);
            REQUIRE(five[i].cli({"SET", "probe", "x"}).text.starts_with(r.word));
        };
        refuse(0);
        refuse(3);
        CHECK(lease.renew().has_value());
        CHECK(lease.release() == hf::ReleaseResult::released);
        auto next = hold(*lock);
        CHECK(next.fencing_token() > last);
        last = next.fencing_token();
        CHECK(next.renew().has_value());
        CHECK(next.release() == hf::ReleaseResult::released);
        // A third one, and there is no majority: said with each node's words, and nothing is left.
        refuse(4);
        std::string words;
        CHECK(refusal(*lock, &words) == errc::no_quorum);
        CHECK(words.find(r.word) != words.npos);
        for (const std::size_t i : {0U, 3U, 4U})
            five[i].cli(r.end);
        lab::wait_until([&] { return five.holding("name") == 0; }, cap(5s), "nothing is left");
        // Back again, they vote again.
        auto all = hold_at_all(*lock, five);
        CHECK(all.fencing_token() > last);
        last = all.fencing_token();
        all.release();
    }
}

TEST_CASE("faults: a node that has become a replica is left, by every connection") {
    Five three(false, {}, 3);
    lab::Proxy proxy(three[0].port());
    const auto client = open("redlock://127.0.0.1:" + std::to_string(proxy.port()) + "," +
                             three.where(1) + "," + three.where(2) + "?durable=yes");
    const auto lock = lock_of(client, "name");
    for (const bool async : {false, true}) {
        INFO((async ? "by the engine" : "by lane"));
        lab::wait_until(
            [&] {
                const auto lease = acquire(*lock, async);
                return lab::reached(
                    [&] {
                        return three[0].cli({"EXISTS", "name"}).integer == 1;
                    },
                    200ms);
            },
            cap(10s), "the first node votes");
        const auto before = proxy.counters().connections_accepted;
        three[0].cli({"REPLICAOF", "127.0.0.1", "1"});
        REQUIRE(three[0].cli({"SET", "probe", "x"}).text.starts_with("READONLY"));
        lab::wait_until(
            [&] {
                acquire(*lock, async).release();
                return proxy.counters().connections_accepted > before;
            },
            cap(10s), "it is connected to anew");
        three[0].cli({"REPLICAOF", "NO", "ONE"});
    }
}

TEST_CASE("faults: one node's clock jumps ahead or back: the majority decides") {
    Clocks five;
    const auto query = std::string("?durable=yes&ttl=10s");
    const auto first = open(five.url + query), second = open(five.url + query);
    const auto lock = lock_of(first, "name"), other = lock_of(second, "name");
    hold(*other).release();  // both know the nodes' clocks as they were
    auto lease = hold(*lock);
    // At all five: what it has at three only, one clock can take from it.
    lab::wait_until(
        [&] {
            return lease.renew() && five.left(0) > 0 && five.left(1) > 0 && five.left(2) > 0 &&
                   five.left(3) > 0 && five.left(4) > 0;
        },
        cap(10s), "all five have it");
    SECTION("ahead") {
        five.jump(60s, [](auto left) { return left == -2; });
        CHECK(refusal(*other) == errc::contended);
        CHECK(lease.renew().has_value());
        lab::wait_until([&] { return five.left(0) > 0; }, cap(5s), "it is given back to it");
        const auto token = lease.fencing_token();
        CHECK(lease.release() == hf::ReleaseResult::released);
        auto next = hold(*other);
        CHECK(next.fencing_token() > token);
    }
    SECTION("back") {
        five.jump(-1h, [](auto left) { return left > 3'000'000; });
        CHECK(refusal(*other) == errc::contended);
        CHECK(lease.renew().has_value());
        lab::wait_until([&] { return five.left(0) <= 10'000; }, cap(5s), "put right");
        const auto token = lease.fencing_token();
        CHECK(lease.release() == hf::ReleaseResult::released);
        // Who dies leaves it at that node for an hour, and that is a minority.
        auto dead = hold(*lock_of(first, "name", {.ttl = 1s, .renew = false}));
        lab::wait_until([&] { return five.left(0) > 0; }, 5s, "that node has it");
        five.jump(-1h, [](auto left) { return left > 3'000'000; });
        auto next = hold(*other, 30s);
        CHECK_FALSE(dead.valid());
        CHECK(next.fencing_token() > token);
    }
}

TEST_CASE("faults: min_hold is a length, whatever the nodes' clocks did since they were asked") {
    Clocks three(3);
    const auto client = open(three.url + "?durable=yes&ttl=2s");
    const auto lock = lock_of(client, "name", {.min_hold = 500ms});
    hold(*lock).release();
    for (std::size_t i = 0; i < 3; ++i)
        three.jump(i, -10min);
    // From here on a name that is closed until a moment of before is so for minutes.
    hold(*lock_of(client, "other", {.min_hold = 500ms})).release();
    for (const auto& node : three.nodes)
        CHECK(node->cli({"PTTL", "other"}).integer <= 600);
    CHECK(hold(*lock_of(client, "other"), 10s).valid());
}

TEST_CASE("faults: a node whose clock was set back behind its start grants locks") {
    Clocks three(3);
    for (std::size_t i = 0; i < 3; ++i)
        three.jump(i, -1h);
    CHECK(hold(*lock_of(open(three.url + "?durable=yes"), "name"), 10s).valid());
}

TEST_CASE(
    "one clock that is ahead takes no token along, so that a node without data is no step "
    "back") {
    const auto wrong = GENERATE(hf::milliseconds(10min), hf::milliseconds(2h));
    const bool async = GENERATE(false, true);
    INFO(ms(wrong) << " ms ahead" << (async ? ", by the engine" : ", by lane"));
    Clocks three(3);
    const auto url = three.url + "?durable=yes&node_timeout=200ms";
    // Each is a client that knows nothing yet, as every run of the command is.
    const auto token = [&] {
        const auto client = open(url);
        const auto lease = acquire(*lock_of(client, "name"), async);
        return lease.fencing_token().value;
    };
    const auto all_free = [&] {
        for (const auto& node : three.nodes)
            if (node->alive() && node->cli({"EXISTS", "name"}).integer == 1) return false;
        return true;
    };
    three.jump(0, wrong);
    three.nodes[2]->kill();
    const auto before = token();
    lab::wait_until(all_free, 5s, "given back");
    three.clocks[0]->set(0ms);
    three.nodes[0]->restart(Data::fresh);
    three.nodes[2]->restart(Data::fresh);
    three.nodes[1]->kill();
    const auto after = token();
    CHECK(after > before);
    CHECK(after - before < 60'000'000);  // both are times, in us
}
