// The line of waiters: order, hand-over without a request, the dead and the stale.
#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;

namespace {

std::size_t receivers(RedisServer& server) {
    std::size_t n = 0;
    for (const auto& channel : server.cli({"PUBSUB", "CHANNELS", "hf:c:*"}).elements)
        n += channel.text.empty() ? 0 : 1;
    return n;
}

}  // namespace

TEST_CASE("line: first come, first served, and no request for a hand-over") {
    auto server = RedisServer::start();
    Rig holder(server.url()), left(server.url()), right(server.url());
    Try h("a"), w1("a", 10s, true), w2("a", 10s, true), w3("a", 10s, true);
    REQUIRE(holder.attempt(h).granted());
    REQUIRE(left.attempt(w1).busy());
    REQUIRE(right.attempt(w2).busy());
    REQUIRE(left.attempt(w3).busy());
    CHECK(receivers(server) == 2);
    const auto seen = holder.inspect("a");
    REQUIRE(seen->waiters.size() == 3);
    CHECK(seen->waiters[0].owner == w1.owner);
    CHECK(seen->waiters[1].owner == w2.owner);
    CHECK(seen->waiters[2].owner == w3.owner);

    CHECK(holder.release(h) == ReleaseResult::released);
    left.until([&] { return left.woken(w1); }, "the first waiter is told");
    const auto before = left.backend->requests();
    const auto base = w1.a.sent;
    REQUIRE(left.attempt(w1).granted());
    CHECK(left.backend->requests() == before);
    CHECK(w1.grant().base == base);
    CHECK(w1.grant().ttl == 3s);
    CHECK(w1.grant().previous == PreviousHolder::released);
    CHECK(w1.token() > h.token());
    // The first renewal claims it and gives it its whole ttl.
    CHECK(left.renew(w1).renewal == spi::Held::Renewal::renewed);
    CHECK(server.cli({"PTTL", "a"}).integer > 9000);
    CHECK(server.cli({"GET", "{a}:hf:s"}).text.substr(19, 1) == "1");

    CHECK(left.release(w1) == ReleaseResult::released);
    right.until([&] { return right.woken(w2); }, "the second waiter is told");
    CHECK_FALSE(left.woken(w3));
    REQUIRE(right.attempt(w2).granted());
    CHECK(w2.token() > w1.token());
    CHECK(right.release(w2) == ReleaseResult::released);
    left.until([&] { return left.woken(w3); }, "the third waiter is told");
    REQUIRE(left.attempt(w3).granted());
    CHECK(left.release(w3) == ReleaseResult::released);
    CHECK(server.cli({"KEYS", "*"}).elements.size() == 1);
}

TEST_CASE("line: a message for an owner that is gone is given back") {
    auto server = RedisServer::start();
    Rig holder(server.url()), waiting(server.url());
    Try h("a");
    REQUIRE(holder.attempt(h).granted());
    {
        Try w("a", 10s, true);
        REQUIRE(waiting.attempt(w).busy());
    }  // its place is dropped without a word
    CHECK(holder.release(h) == ReleaseResult::released);
    // Given back, not run out: the state says so.
    waiting.until(
        [&] {
            return server.cli({"GET", "{a}:hf:s"}).text.ends_with(":0r:");
        },
        "it is given back");
    CHECK(server.cli({"EXISTS", "a"}).integer == 0);
}

TEST_CASE("line: a stale message is no grant") {
    auto server = RedisServer::start();
    Rig holder(server.url()), waiting(server.url());
    Try h("a"), w("a", 10s, true);
    REQUIRE(holder.attempt(h).granted());
    REQUIRE(waiting.attempt(w).busy());
    const auto channel = server.cli({"PUBSUB", "CHANNELS", "hf:c:*"}).elements.at(0).text;
    // The token of the grant that the last look saw: that hand-over is over.
    server.cli({"PUBLISH", channel, w.owner + " " + std::to_string(h.token()) + " r a"});
    waiting.until([&] { return waiting.woken(w); }, "the message arrives");
    CHECK(waiting.attempt(w).busy());
    for (const std::string nonsense :
         {"", " ", "x", "x y z", "x 1 r", "x 99999999999999999999 r b"})
        server.cli({"PUBLISH", channel, nonsense});
    CHECK(waiting.attempt(w).busy());
    CHECK(waiting.withdraw(w) == holdfast::error_code());
    CHECK(server.cli({"GET", "a"}).text == h.owner);
}

TEST_CASE("line: a dead waiter is passed over, one that does not listen keeps its place") {
    auto server = RedisServer::start();
    Rig holder(server.url());
    Try h("a"), w("a", 10s, true);
    REQUIRE(holder.attempt(h).granted());
    {
        auto dead = std::make_unique<Rig>(server.url());
        Try d("a", 2s, true);
        REQUIRE(dead->attempt(d).busy());
    }
    Rig waiting(server.url());
    REQUIRE(waiting.attempt(w).busy());
    CHECK(holder.inspect("a").value().waiters.size() == 2);
    holdfast::lab::wait_until([&] { return holder.inspect("a").value().waiters.size() == 1; }, 5s,
                              "the dead waiter's time is over");
    CHECK(holder.release(h) == ReleaseResult::released);
    waiting.until([&] { return waiting.woken(w); }, "the live waiter is told");
    REQUIRE(waiting.attempt(w).granted());
    CHECK(waiting.release(w) == ReleaseResult::released);
}

TEST_CASE("line: ten thousand dead waiters are swept in bounded steps") {
    test_support::Trial& trial = test_support::this_trial();
    auto server = RedisServer::start();
    Rig rig(server.url());
    auto c = server.connect();
    for (int i = 0; i < 10000; i += 100) {
        std::vector<std::string> queue{"ZADD", "{a}:hf:q"}, waiters{"HSET", "{a}:hf:w"};
        for (int k = i; k < i + 100; ++k) {
            const std::string owner = "dead" + std::to_string(k);
            queue.push_back(std::to_string(k));
            queue.push_back(owner);
            waiters.push_back(owner);
            waiters.push_back("1 3000 hf:c:none");
        }
        c.command(queue);
        c.command(waiters);
    }
    Try t("a");
    int calls = 0;
    auto longest = boot_clock::duration::zero();
    do {
        const auto start = boot_clock::now();
        rig.attempt(t);
        longest = std::max(longest, boot_clock::now() - start);
        REQUIRE(++calls < 100);
    } while (!t.granted());
    CHECK(calls >= 19);
    trial.within(longest, 500ms, "the longest hand-off");
    CHECK(rig.release(t) == ReleaseResult::released);
    CHECK(server.cli({"EXISTS", "a", "{a}:hf:q", "{a}:hf:w"}).integer == 0);
}

TEST_CASE("line: a lost subscription is made again, and everybody looks") {
    auto server = RedisServer::start();
    Rig holder(server.url()), waiting(server.url());
    Try h("a"), w("a", 10s, true);
    REQUIRE(holder.attempt(h).granted());
    REQUIRE(waiting.attempt(w).busy());
    server.cli({"CLIENT", "KILL", "TYPE", "pubsub"});
    waiting.until([&] { return waiting.woken(w); }, "the waiter is woken after the gap");
    CHECK(receivers(server) == 1);
    REQUIRE(waiting.attempt(w).busy());
    waiting.events.woken.clear();
    CHECK(holder.release(h) == ReleaseResult::released);
    waiting.until([&] { return waiting.woken(w); }, "the waiter is told");
    CHECK(waiting.attempt(w).granted());
}

TEST_CASE("line: wait=poll leaves the key absent when it is free") {
    auto server = RedisServer::start();
    Rig rig(server.url(), "wait=poll");
    CHECK_FALSE(rig.backend->capabilities().has(holdfast::Capability::fifo));
    Try h("a"), w("a", 10s, true);
    REQUIRE(rig.attempt(h).granted());
    REQUIRE(rig.attempt(w).busy());
    CHECK(std::get<spi::Attempt::Busy>(w.a.outcome).polling);
    CHECK(rig.release(h) == ReleaseResult::released);
    CHECK(server.cli({"EXISTS", "a", "{a}:hf:q"}).integer == 0);
    CHECK(server.cli({"SET", "a", "foreign", "NX", "PX", "200"}).is_ok());
    REQUIRE(rig.attempt(w).busy());
    holdfast::lab::wait_until([&] { return rig.attempt(w).granted(); }, 5s, "the foreign one ends");
    CHECK(w.token() > h.token());
    CHECK(receivers(server) == 0);
}

TEST_CASE("line: a hundred waiters look in four requests") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try h("a");
    REQUIRE(rig.attempt(h).granted());
    std::vector<std::unique_ptr<Try>> all;
    for (int i = 0; i < 100; ++i)
        all.push_back(std::make_unique<Try>("a", 10s, true));
    const auto look = [&] {
        for (std::size_t at = 0; at < all.size();
             at += rig.backend->max_batch(spi::Verb::attempt)) {
            std::vector<Try*> batch;
            for (std::size_t i = at; i < std::min(at + 32, all.size()); ++i)
                batch.push_back(all[i].get());
            rig.attempt(batch);
            for (const Try* t : batch)
                REQUIRE(t->busy());
        }
    };
    look();
    const auto before = rig.backend->requests();
    look();
    CHECK(rig.backend->requests() - before == 4);
    const auto seen = rig.inspect("a");
    REQUIRE(seen->waiters.size() == 100);
    for (std::size_t i = 0; i < 100; ++i)
        CHECK(seen->waiters[i].owner == all[i]->owner);
}
