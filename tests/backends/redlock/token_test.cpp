// The fencing token is kept by a majority: it never goes back, whichever minority is down.
#include <iostream>
#include <random>
#include <thread>

#include "five.hpp"
#include "node.hpp"

using namespace redlock_tests;

namespace {

const std::string state_key = "{name}:hf:t";

/// The highest token that at least three nodes have.
std::uint64_t kept_by_a_majority(Five& five) {
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < five.size(); ++i) {
        const auto state = five[i].cli({"GET", state_key});
        all.push_back(state.is_nil() ? 0 : std::stoull(state.text.substr(2, 16)));
    }
    std::sort(all.rbegin(), all.rend());
    return all[five.size() / 2];
}

}  // namespace

TEST_CASE("tokens: higher than any that one node has seen, and kept by a majority", "[token]") {
    Five five;
    const auto client = open(five.url());
    const auto lock = lock_of(client, "name");
    for (const bool async : {false, true}) {
        // A majority is far ahead of every clock: a second round has to raise the token.
        const std::uint64_t ahead = async ? 9100000000000000 : 9000000000000000;
        for (const std::size_t i : {1U, 2U, 4U})
            five[i].cli({"SET", state_key, "1:" + std::to_string(ahead) + ":x"});
        auto lease = acquire(*lock, async);
        CHECK(lease.fencing_token().value == ahead + 1);
        CHECK(kept_by_a_majority(five) == ahead + 1);
        lease.release();
        // The next client knows nothing of it, and two of the nodes that do are gone.
        five[1].pause();
        five[2].pause();
        const auto fresh = open(five.url("durable=yes&node_timeout=100ms"));
        auto next = acquire(*lock_of(fresh, "name"), async);
        CHECK(next.fencing_token().value == ahead + 2);
        next.release();
        five[1].resume();
        five[2].resume();
        lab::wait_until([&] { return five.holding("name") == 0; }, 5s, "given back");
    }
    // It outlives the lock by a day, counted from the token.
    CHECK(five[4].cli({"PEXPIRETIME", state_key}).integer >= 9100000000000 + 86'400'000);
}

TEST_CASE("tokens: a state that holds no token, or one that could not grow, is refused and stays",
          "[token]") {
    const std::string state =
        GENERATE("1:-000000000000005:x", "1:9999999999999999:x", "1:12:x", "1:0x00000000000001:x",
                 "1:1795451605446001", "3:1795451605446001:x");
    INFO(state);
    Five five(false, {}, 3);
    const auto client = open(five.url());
    const auto lock = lock_of(client, "name");
    five[0].cli({"SET", state_key, state});
    auto lease = acquire(*lock, false);
    CHECK(lease.fencing_token().value < 9'000'000'000'000'000);
    lease.release();
    five[1].cli({"SET", state_key, state});
    five[2].cli({"SET", state_key, state});
    CHECK(refusal(*lock) == errc::kind_mismatch);
    lab::wait_until([&] { return five.holding("name") == 0; }, 5s, "nothing is left");
    CHECK(five[0].cli({"GET", state_key}).text == state);
    CHECK(five[1].cli({"GET", state_key}).text == state);
}

// Two clients may propose the same: a token that a majority has written must be of one of them.
TEST_CASE("tokens: a node refuses one that another owner has written, and lower ones", "[token]") {
    Node node;
    rl::Keys keys;
    keys.assign("", "name");
    boot_clock::time_point at{std::chrono::hours(1)};
    const auto enter = [&](const char* owner, const char* token) {
        return node.run(rl::enter_ask(keys, owner, node_ttl, token, at + 100ms), at).text;
    };
    CHECK(enter("x", "1000000000000005") == "g");
    CHECK(enter("x", "1000000000000005") == "G");
    at += 2 * node_ttl;
    CHECK(enter("y", "1000000000000005") == "h 1000000000000005");
    CHECK(enter("y", "1000000000000004") == "H 1000000000000005");
    CHECK(enter("y", "1000000000000006") == "G");
}

TEST_CASE("tokens: a minority is killed during acquire, renew and release, and none goes back",
          "[token]") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Five five(true);
    std::vector<hf::Client> clients;
    for (int i = 0; i < 2; ++i)
        clients.push_back(open(five.url("durable=yes&ttl=5s&node_timeout=200ms")));
    hf::FencingToken last;
    int during[3] = {0, 0, 0};
    constexpr int rounds = 60;
    // Until each phase has seen a node killed, which the moments alone do not promise.
    const auto all_seen = [&] { return during[0] > 0 && during[1] > 0 && during[2] > 0; };
    int round = 0;
    for (; round < rounds || (round < 4 * rounds && !all_seen()); ++round) {
        const auto phase = random() % 3;
        const bool async = random() % 2 == 0;
        const std::size_t a = random() % 5, b = (a + 1 + random() % 4) % 5;
        const auto pause = std::chrono::microseconds(random() % 1200);
        std::atomic<bool> begun{false}, over{false};
        bool in_time = false;
        // The killer waits for the phase to begin, and a little longer.
        std::thread killer([&] {
            while (!begun) {
            }
            const auto until = now() + pause;
            while (now() < until) {
            }
            five[a].process().signal(SIGKILL);
            in_time = !over;
            five[b].process().signal(SIGKILL);
        });
        const auto in_phase = [&](unsigned which, auto&& f) {
            if (phase == which) begun = true;
            f();
            if (phase == which) over = true;
        };
        const auto lock = lock_of(clients[random() % 2], "name", {.ttl = 5s});
        hf::Lease lease;
        in_phase(0, [&] { lease = acquire(*lock, async); });
        // The last release may have reached a majority only: this one waited for nothing but that.
        CHECK(lease.fencing_token() > last);
        last = lease.fencing_token();
        in_phase(1, [&] {
            for (int i = 0; i < 3; ++i)
                (void)lease.renew();
        });
        CHECK(lease.valid());
        in_phase(2, [&] { lease.release(); });
        killer.join();
        during[phase] += in_time ? 1 : 0;
        for (const std::size_t i : {a, b}) {
            lab::wait_until([&] { return !five[i].alive(); }, 5s, "it was killed");
            five[i].restart(Data::keep);
        }
    }
    std::cout << "redlock tokens, seed " << seed << ": " << round << " grants; nodes killed during "
              << during[0] << " acquires, " << during[1] << " renewals, " << during[2]
              << " releases\n";
    CHECK(during[0] + during[1] + during[2] > rounds / 4);
    CHECK(all_seen());
    CHECK(kept_by_a_majority(five) >= last.value);
}
