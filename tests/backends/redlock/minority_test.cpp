// T12 and T13: what a minority, and a majority, of nodes that are down, hung, slow or taken costs.
#include <future>
#include <thread>

#include "five.hpp"
#include "trial.hpp"

using namespace redlock_tests;

TEST_CASE("T12: a minority that is down, hung or slow costs at most one node_timeout, once",
          "[T12]") {
    test_support::Trial& trial = test_support::this_trial();
    constexpr auto silence = 400ms;
    for (const std::string fault : {"down", "hung", "slow"})
        for (const bool async : {false, true}) {
            INFO(fault << (async ? " on the engine" : " on a lane"));
            Five five;
            Proxied proxies(five);
            const auto client = open(proxies.url("durable=yes&node_timeout=400ms"));
            const auto lock = lock_of(client, "name");
            const auto cycle = [&] {
                const auto start = now();
                if (async) {
                    std::promise<hf::Lease> got;
                    lock->async_acquire({.wait = 5s}, [&](hf::error_code, hf::Lease l) {
                        got.set_value(std::move(l));
                    });
                    auto lease = got.get_future().get();
                    REQUIRE(lease.valid());
                    CHECK(lease.renew().has_value());
                    std::promise<void> released;
                    lease.async_release(hf::Outcome::done, [&](hf::error_code, hf::ReleaseResult) {
                        released.set_value();
                    });
                    released.get_future().wait();
                } else {
                    auto lease = hold(*lock, 5s);
                    CHECK(lease.renew().has_value());
                    CHECK(lease.release() == hf::ReleaseResult::released);
                }
                return now() - start;
            };
            const auto twenty = [&] {
                const auto start = now();
                for (int i = 0; i < 20; ++i)
                    cycle();
                return now() - start;
            };
            for (int i = 0; i < 3; ++i)
                cycle();
            // What this machine takes without a fault is what the rest is measured by.
            const auto undisturbed = std::chrono::ceil<std::chrono::milliseconds>(twenty());
            for (const std::size_t i : {1U, 3U}) {
                if (fault == "down") five[i].kill();
                if (fault == "hung") five[i].pause();
                if (fault == "slow") proxies[i].delay(lab::Direction::to_client, 700ms);
            }
            // All cycles together: the fault may cost one silence, and only one.
            trial.within(twenty(), silence + 500ms + 2 * undisturbed, "all of it");
            // It took effect: those two never saw the last rounds.
            if (fault == "down") CHECK_FALSE(five[1].alive());
            if (fault == "hung") CHECK(five[1].process().state() == lab::ProcessState::stopped);
            if (fault == "slow") CHECK(proxies[1].counters().delayed > 0);
            for (const std::size_t i : {1U, 3U}) {
                if (fault == "down") five[i].restart(Data::fresh);
                if (fault == "hung") five[i].resume();
                if (fault == "slow") proxies[i].heal();
            }
            // Back again, they vote again.
            lab::wait_until(
                [&] {
                    auto lease = hold(*lock, 5s);
                    const bool all_five =
                        lab::reached([&] { return five.holding("name") == 5; }, 200ms);
                    lease.release();
                    return all_five;
                },
                cap(10s), "all five vote again");
            lab::wait_until([&] { return five.holding("name") == 0; }, 5s, "all is given back");
        }
}

TEST_CASE("T12: an undecided round waits for the silent minority once", "[T12]") {
    test_support::Trial& trial = test_support::this_trial();
    Five five;
    const auto client = open(five.url("durable=yes&node_timeout=300ms"));
    const auto lock = lock_of(client, "split");
    const auto refused = [&](int times) {
        const auto start = now();
        for (int i = 0; i < times; ++i)
            CHECK(refusal(*lock) == errc::contended);
        return now() - start;
    };
    hold(*lock).release();
    // What this machine takes for refusals without silence is what the rest is measured by.
    for (const std::size_t i : {2U, 3U, 4U})
        five[i].cli({"SET", "split", "somebody"});
    refused(1);
    const auto undisturbed = std::chrono::ceil<std::chrono::milliseconds>(refused(5));
    for (const std::size_t i : {3U, 4U})
        five[i].cli({"DEL", "split"});
    // Two say yes, one no: the two that are silent decide, and then count as missing.
    five[3].pause();
    five[4].pause();
    const auto first = refused(1);
    CHECK(first >= 250ms);
    trial.within(first, 600ms + 2 * undisturbed, "the first answer");
    trial.within(refused(5), 250ms + 2 * undisturbed, "five more answers");
    // T13: what was taken is given back, after the answer and without the caller.
    lab::wait_until([&] { return five.holding("split") == 1; }, 2s, "the rest is given back");
    five[3].resume();
    five[4].resume();
}

TEST_CASE("T13: a failed round is undone at every node, also for a caller that was cancelled",
          "[T13]") {
    Five five;
    const auto client = open(five.url("durable=yes&node_timeout=200ms"));
    const auto lock = lock_of(client, "name");
    hold(*lock).release();

    SECTION("somebody else has a majority") {
        for (const std::size_t i : {0U, 1U, 2U})
            five[i].cli({"SET", "name", "somebody"});
        CHECK(refusal(*lock) == errc::contended);
        lab::wait_until([&] { return five.holding("name") == 3; }, 2s, "the rest is given back");
        CHECK(five[3].cli({"EXISTS", "name"}).integer == 0);
    }
    SECTION("no majority is there") {
        for (const std::size_t i : {0U, 1U, 2U})
            five[i].pause();
        std::string words;
        CHECK(refusal(*lock, &words) == errc::no_quorum);
        INFO(words);
        CHECK(words.find("2 of 5 nodes granted it, 3 are needed") != words.npos);
        // The second form where it had been silent before, and is being connected to anew.
        CHECK((words.find(five.where(0) + ": the server did not answer in time") != words.npos ||
               words.find(five.where(0) + ": no answer from") != words.npos));
        CHECK(words.find(five.where(3) + ": granted") != words.npos);
        lab::wait_until([&] { return five.holding("name") == 0; }, 2s, "given back");
        // And when the frozen ones go on, they execute what they had received, and its undoing.
        for (const std::size_t i : {0U, 1U, 2U})
            five[i].resume();
        lab::wait_until([&] { return five.holding("name") == 0; }, 2s, "nothing is left");
        CHECK(lab::stays_true([&] { return five.holding("name") == 0; }, 700ms));
        CHECK(hold(*lock).valid());
    }
    SECTION("the caller is cancelled while nodes are frozen") {
        for (const std::size_t i : {0U, 1U, 2U})
            five[i].pause();
        for (const auto pause : {0ms, 5ms, 50ms, 150ms}) {
            std::stop_source stop;
            hf::error_code ended;
            std::thread waiting([&] {
                const auto got = lock->acquire({.wait = 10s}, stop.get_token());
                ended = got ? hf::error_code() : got.error();
            });
            const auto until = now() + pause;
            lab::wait_until([&] { return now() >= until; }, 1s, "the moment");
            stop.request_stop();
            waiting.join();
            CHECK((ended == errc::cancelled || ended == errc::no_quorum));
        }
        lab::wait_until([&] { return five.holding("name") == 0; }, 2s, "given back");
        for (const std::size_t i : {0U, 1U, 2U})
            five[i].resume();
        lab::wait_until([&] { return five.holding("name") == 0; }, 2s, "nothing is left");
        CHECK(lab::stays_true([&] { return five.holding("name") == 0; }, 700ms));
    }
}

TEST_CASE("a lease is renewed by a majority of real renewals, and an empty node is repaired",
          "[renewal]") {
    Five five;
    const auto client = open(five.url("durable=yes&ttl=2s"));
    auto lease = hold(*lock_of(client, "name"));
    lab::wait_until([&] { return five.holding("name") == 5; }, 10s, "all five have it");
    for (const std::size_t i : {0U, 1U})
        five[i].cli({"DEL", "name"});
    REQUIRE(lease.renew().has_value());
    lab::wait_until([&] { return five.holding("name") == 5; }, 2s, "both are repaired");
    CHECK(five[0].cli({"GET", "name"}).text == lease.owner_id());
    // A majority is gone: lost, and nothing brings it back.
    for (const std::size_t i : {0U, 1U, 2U})
        five[i].cli({"DEL", "name"});
    CHECK_FALSE(lease.renew().has_value());
    CHECK(lease.state() == hf::LeaseState::lost);
    CHECK(lease.lost_reason() == errc::lost);
    CHECK(lab::stays_true([&] { return five[0].cli({"EXISTS", "name"}).integer == 0; }, 800ms));
}

// An answer that comes after a majority has granted is not waited for: one that says that the
// script is missing would leave the node without the lease until its first renewal.
TEST_CASE("a new connection tells its node the scripts whole") {
    Five five;
    const auto client = open(five.url());
    hold(*lock_of(client, "name")).release();
    for (std::size_t i = 0; i < five.size(); ++i)
        CHECK(five[i].cli({"INFO", "errorstats"}).text.find("NOSCRIPT") == std::string::npos);
}

TEST_CASE("what a lost lease has left at a minority is given back", "[renewal]") {
    Five five;
    const auto client = open(five.url("durable=yes&ttl=60s"));
    auto lease = hold(*lock_of(client, "name"));
    // A majority is enough for a grant; a renewal repairs the rest.
    lab::wait_until([&] { return lease.renew().has_value() && five.holding("name") == 5; },
                    cap(10s), "all five have it");

    SECTION("at nodes that are there") {}
    SECTION("at one that is not there just now") {
        five[4].pause();
    }
    SECTION("what was put in its place is somebody else's") {
        five[4].cli({"SET", "name", "somebody"});
    }
    for (const std::size_t i : {0U, 1U, 2U})
        five[i].cli({"DEL", "name"});
    CHECK(lease.renew().error() == errc::lost);
    const bool paused = five[4].process().state() == lab::ProcessState::stopped;
    lab::wait_until(
        [&] {
            return five[3].cli({"EXISTS", "name"}).integer == 0;
        },
        cap(5s), "the fourth is free");
    if (paused) five[4].resume();
    if (!paused && five[4].cli({"GET", "name"}).text == "somebody") return;
    lab::wait_until([&] { return five.holding("name") == 0; }, cap(5s), "all are free");
}

TEST_CASE("inspect shows what each node says", "[inspect]") {
    Five five;
    const auto client = open(five.url("durable=yes&node_timeout=1s"));
    auto lease = hold(*lock_of(client, "name"));
    lab::wait_until([&] { return five.holding("name") == 5; }, 10s, "all five have it");
    five[4].kill();
    five[0].cli({"SET", "name", "somebody else"});
    const auto seen = client.inspect("name");
    REQUIRE(seen.has_value());
    REQUIRE(seen->nodes.size() == 5);
    CHECK(seen->nodes[0].owner == "somebody else");
    CHECK(seen->nodes[1].owner == lease.owner_id());
    CHECK(seen->nodes[1].node == five.where(1));
    CHECK(seen->nodes[1].ttl_left > 0ms);
    CHECK(seen->nodes[4].error);
    REQUIRE(seen->holders.size() == 1);
    CHECK(seen->holders[0].token == lease.fencing_token());
    lease.release();
    // One node of five says nothing of who holds it.
    const auto after = client.inspect("name");
    REQUIRE(after.has_value());
    CHECK(after->holders.empty());
    CHECK(after->nodes[0].owner == "somebody else");
}
