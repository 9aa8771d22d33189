// What a hand-over message may say, when it goes out, and to whom the lock goes.
#include <thread>

#include "catch.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;
namespace lab = holdfast::lab;

namespace {

/// A name that is held, with one waiter in line.
struct Line {
    explicit Line(const std::string& query = {}) : waiting(server.url(), query) {
        REQUIRE(holder.attempt(h).granted());
        REQUIRE(waiting.attempt(w).busy());
        channel = server.cli({"PUBSUB", "CHANNELS", "hf:c:*"}).elements.at(0).text;
    }
    /// As anybody with the right to PUBLISH can; returns when it was read.
    void publish(const std::string& text) {
        server.cli({"PUBLISH", channel, text});
        waiting.events.woken.clear();
        server.cli({"PUBLISH", channel, w.owner + " 1 r a"});
        waiting.until([&] { return waiting.woken(w); }, "the message behind it is read");
    }
    std::string now_us() {
        const auto time = server.cli({"TIME"});
        return std::to_string(std::stoull(time.elements.at(0).text) * 1'000'000 +
                              std::stoull(time.elements.at(1).text));
    }
    std::string holder_of_a() { return server.cli({"GET", "a"}).text; }

    RedisServer server = RedisServer::start();
    Rig holder{server.url()}, waiting;
    Try h{"a"}, w{"a", 10s, true};
    std::string channel;
};

}  // namespace

TEST_CASE("hand-over: a token that the server cannot have given is no grant") {
    const std::string token = GENERATE("1999999999999999", "-5", "-9223372036854775808");
    INFO(token);
    Line line;
    line.server.cli({"PUBLISH", line.channel, line.w.owner + " " + token + " r a"});
    // One that is refused for its token wakes the waiter all the same.
    line.server.cli({"PUBLISH", line.channel, line.w.owner + " 1999999999999999 r a"});
    line.waiting.until([&] { return line.waiting.woken(line.w); }, "the message behind it is read");
    CHECK(line.waiting.attempt(line.w).busy());
    // The real one is believed as before.
    line.waiting.events.woken.clear();
    CHECK(line.holder.release(line.h) == ReleaseResult::released);
    line.waiting.until([&] { return line.waiting.woken(line.w); }, "the waiter is told");
    const auto before = line.waiting.backend->requests();
    REQUIRE(line.waiting.attempt(line.w).granted());
    CHECK(line.waiting.backend->requests() == before);
}

TEST_CASE("hand-over: a message about another client's owner frees nothing") {
    Line line;
    line.publish(line.h.owner + " " + line.now_us() + " r a");
    // Whatever it made this client send would have been read before this.
    CHECK(line.waiting.attempt(line.w).busy());
    CHECK(line.holder_of_a() == line.h.owner);
    CHECK(line.holder.renew(line.h).renewal == spi::Held::Renewal::renewed);
}

TEST_CASE("hand-over: with handover=confirmed no message is a grant") {
    Line line("handover=confirmed");
    line.publish(line.w.owner + " " + line.now_us() + " r a");
    CHECK(line.waiting.attempt(line.w).busy());
    line.waiting.events.woken.clear();
    CHECK(line.holder.release(line.h) == ReleaseResult::released);
    line.waiting.until([&] { return line.waiting.woken(line.w); }, "the waiter is told");
    const auto before = line.waiting.backend->requests();
    REQUIRE(line.waiting.attempt(line.w).granted());
    CHECK(line.waiting.backend->requests() - before == 1);
    CHECK(line.w.grant().ttl == 10s);
    CHECK(line.w.grant().previous == PreviousHolder::released);
    CHECK(line.server.cli({"PTTL", "a"}).integer > 9000);
}

TEST_CASE("hand-over: a lease that is not renewed has its whole ttl") {
    auto server = RedisServer::start();
    const auto holder = holdfast::Client::open(server.url()).value();
    const auto waiter = holdfast::Client::open(server.url()).value();
    auto first = holder.make_lock("a").value()->acquire({.wait = 10s});
    REQUIRE(first.has_value());
    holdfast::result<holdfast::Lease> second = holdfast::Lease();
    std::thread waits([&] {
        second =
            waiter.make_lock("a", {.ttl = 60s, .renew = false}).value()->acquire({.wait = 30s});
    });
    lab::wait_until([&] { return waiter.stats().waiting == 1; }, 10s, "it waits");
    lab::wait_until(
        [&] {
            return server.cli({"EXISTS", "{a}:hf:q"}).integer == 1;
        },
        10s, "it stands in line");
    CHECK(first->release() == ReleaseResult::released);
    waits.join();
    REQUIRE(second.has_value());
    CHECK(second->valid_until() - boot_clock::now() > 50s);
    CHECK(server.cli({"PTTL", "a"}).integer > 50'000);
    CHECK(second->previous_holder() == PreviousHolder::released);
    CHECK(second->release() == ReleaseResult::released);
}

TEST_CASE("hand-over: who listens to everything is not taken for a dead waiter") {
    auto server = RedisServer::start();
    auto everything = server.connect();
    everything.command({"PSUBSCRIBE", "*"});
    Rig holder(server.url()), living(server.url());
    Try h("a"), w("a", 10s, true);
    REQUIRE(holder.attempt(h).granted());
    Try d("a", 10s, true);
    {
        Rig dead(server.url());
        REQUIRE(dead.attempt(d).busy());
    }
    REQUIRE(living.attempt(w).busy());
    lab::wait_until(
        [&] {
            return server.cli({"PUBSUB", "CHANNELS", "hf:c:*"}).elements.size() == 1;
        },
        10s, "the server has noticed that it is dead");
    CHECK(holder.release(h) == ReleaseResult::released);
    CHECK(server.cli({"GET", "a"}).text == w.owner);
    living.until([&] { return living.woken(w); }, "the living waiter is told");
    CHECK(living.attempt(w).granted());
}

TEST_CASE("hand-over: a server that knows no SUBSCRIBE costs nobody a wait") {
    test_support::Trial& trial = test_support::this_trial();
    holdfast::lab::RedisOptions options;
    options.config = {"rename-command SUBSCRIBE \"\""};
    auto server = RedisServer::start(options);
    Rig rig(server.url());
    const auto start = boot_clock::now();
    for (int i = 0; i < 5; ++i) {
        Try t("a", 10s, true);
        REQUIRE(rig.attempt(t).granted());
        CHECK(rig.release(t) == ReleaseResult::released);
    }
    trial.within(boot_clock::now() - start, 1s, "the answer");
    REQUIRE(rig.events.warnings.size() == 1);
    CHECK_THAT(rig.events.warnings[0], ContainsSubstring("SUBSCRIBE"));
    // A line without being told is better than none.
    Try h("a"), w("a", 10s, true);
    REQUIRE(rig.attempt(h).granted());
    REQUIRE(rig.attempt(w).busy());
    CHECK(rig.release(h) == ReleaseResult::released);
    CHECK(rig.attempt(w).granted());
}

TEST_CASE("hand-over: a late subscription delays nobody for long, and wakes who waits") {
    test_support::Trial& trial = test_support::this_trial();
    auto server = RedisServer::start();
    lab::Proxy proxy(server.port());
    Rig rig("redis://127.0.0.1:" + std::to_string(proxy.port()));
    Rig holder(server.url());
    Try h("a"), warm("b"), w("a", 10s, true);
    REQUIRE(holder.attempt(h).granted());
    REQUIRE(rig.attempt(warm).granted());
    // Each answer takes so long, and a subscription waits for two of them.
    proxy.delay(lab::Direction::to_client, 400ms);
    const auto start = boot_clock::now();
    REQUIRE(rig.attempt(w).busy());
    trial.within(boot_clock::now() - start, 780ms, "the answer");
    rig.until([&] { return rig.woken(w); }, "the waiter is woken by the subscription");
}

TEST_CASE("hand-over: no message goes out where the server then refuses to write the grant") {
    Line line;
    line.server.cli({"DEL", "a"});
    REQUIRE(line.server.cli({"CONFIG", "SET", "maxmemory", "1"}).is_ok());
    Rig other(line.server.url());
    Try o("a");
    other.attempt(o);
    CHECK(o.error() == errc::unavailable);
    CHECK_THAT(o.a.detail, ContainsSubstring("OOM"));
    line.server.cli({"PUBLISH", line.channel, line.w.owner + " 1 r a"});
    line.waiting.until([&] { return line.waiting.woken(line.w); }, "the message behind it is read");
    CHECK(line.waiting.events.woken.size() == 1);
    CHECK(line.server.cli({"EXISTS", "a"}).integer == 0);
    line.server.cli({"CONFIG", "SET", "maxmemory", "0"});
    line.waiting.events.woken.clear();
    CHECK(other.attempt(o).busy());
    line.waiting.until([&] { return line.waiting.woken(line.w); }, "the waiter is notified");
    CHECK(line.waiting.attempt(line.w).granted());
}

TEST_CASE("hand-over: a waiter that listens at a replica only is not notified there") {
    holdfast::lab::RedisOptions options;
    options.config = {"repl-diskless-sync-delay 0", "repl-ping-replica-period 1"};
    auto server = RedisServer::start(options);
    options.config = {"replicaof 127.0.0.1 " + std::to_string(server.port())};
    auto replica = RedisServer::start(options);
    lab::wait_until([&] { return server.replica_acknowledges(); }, lab::default_cap,
                    "the replica is connected");
    Rig holder(server.url());
    Try h("a"), w("a", 10s, true);
    REQUIRE(holder.attempt(h).granted());
    const auto channels = [&] { return server.cli({"PUBSUB", "CHANNELS", "hf:c:*"}).elements; };
    std::string channel;
    {
        Rig gone(server.url());
        REQUIRE(gone.attempt(w).busy());
        lab::wait_until([&] { return channels().size() == 1; }, 10s, "it listens");
        channel = channels().at(0).text;
    }
    lab::wait_until([&] { return channels().empty(); }, 10s, "it listens no more");
    auto listener = replica.connect();
    listener.command({"SUBSCRIBE", channel});
    CHECK(holder.release(h) == ReleaseResult::released);
    server.cli({"PUBLISH", channel, "the message behind it"});
    const auto heard = listener.receive();
    REQUIRE(heard.has_value());
    CHECK(heard->elements.at(2).text == "the message behind it");
    CHECK(server.cli({"EXISTS", "a"}).integer == 0);
}
