// T14: a node that restarts without its data.
#include <thread>

#include "five.hpp"
#include "heard.hpp"

using namespace redlock_tests;

namespace {

/// One holder on nodes 0, 1 and 2; then node 2 loses what it had, and 3 and 4, which the holder
/// never reached, are back. A second client asks. True when both held it at one time.
bool two_holders(Five& five, const std::string& query) {
    const auto first = open(five.url(query)), second = open(five.url(query));
    const auto lock = lock_of(first, "name", {.renew = false}), other = lock_of(second, "name");
    // Nodes that have only just started do not vote, unless they are declared to keep their data.
    std::string words;
    const bool votes = lab::reached([&] { return !refusal(*other, &words); }, 10s);
    INFO(words);
    REQUIRE(votes);
    lab::wait_until([&] { return five.holding("name") == 0; }, 5s, "all free");
    five[3].pause();
    five[4].pause();
    auto lease = hold(*lock, 5s);
    REQUIRE(five.holding("name") == 3);
    const auto id = five[2].info("server").at("run_id");
    // What was under way to the two that are frozen has come too late when they go on.
    const auto late = now() + 400ms;
    lab::wait_until([&] { return now() > late; }, 2s, "the requests' deadline");
    five[2].restart(Data::fresh);
    // The fault took effect: another process, and empty.
    REQUIRE(five[2].info("server").at("run_id") != id);
    REQUIRE(five.holding("name") == 2);
    five[3].resume();
    five[4].resume();
    REQUIRE(five.holding("name") == 2);
    REQUIRE(lease.valid());
    hf::Diagnostics said;
    auto next = other->acquire({.wait = 15s, .diagnostics = &said});
    INFO(said.text());
    REQUIRE(next.has_value());
    const bool both = lease.valid() && next->valid();
    next->release();
    return both;
}

}  // namespace

TEST_CASE("T14: a node that restarts empty does not vote before max_ttl has passed", "[T14]") {
    Five five;
    CHECK_FALSE(two_holders(five, "ttl=3s&max_ttl=3s&node_timeout=100ms&request_timeout=300ms"));
}

TEST_CASE("T14: declared durable and not so, the same gives two holders: the check can fail",
          "[T14]") {
    Five five;
    CHECK(two_holders(five,
                      "ttl=3s&max_ttl=3s&node_timeout=100ms&request_timeout=300ms&durable=yes"));
}

TEST_CASE("T14: nodes that have just started say so", "[T14]") {
    Five five;
    const auto client = open(five.url("max_ttl=60s"));
    std::string words;
    CHECK(refusal(*lock_of(client, "name"), &words) == errc::no_quorum);
    INFO(words);
    CHECK(words.find("started not long ago, and votes in ") != words.npos);
    CHECK(words.find("0 of 5 nodes granted it") != words.npos);
    CHECK(five.holding("name") == 0);
    // Who waits, waits until they do. (For another max_ttl the operator has to start anew.)
    for (std::size_t i = 0; i < five.size(); ++i)
        five[i].cli({"DEL", "{redlock}:hf:n"});
    const auto patient = open(five.url("max_ttl=1s&ttl=1s&request_timeout=200ms"));
    CHECK(hold(*lock_of(patient, "name"), 20s).valid());
}

TEST_CASE("T34: every node restarts, one after the other, and the lease and a waiter survive",
          "[T34]") {
    Five five(true);
    const auto client = open(five.url("durable=yes&ttl=3s"));
    test_support::Heard heard;
    const auto other = open(five.url("durable=yes&ttl=3s"), {.events = heard.sink()});
    auto lease = hold(*lock_of(client, "name"));
    hf::result<hf::Lease> got = hf::Lease();
    std::thread waiting([&] { got = lock_of(other, "name")->acquire({.wait = 60s}); });
    lab::wait_until([&] { return heard.waits(); }, cap(5s), "it waits");
    for (std::size_t i = 0; i < 5; ++i) {
        const auto id = five[i].info("server").at("run_id");
        five[i].kill();
        five[i].restart(Data::keep);
        CHECK(five[i].info("server").at("run_id") != id);
        const auto before = client.stats().renewals;
        lab::wait_until([&] { return client.stats().renewals > before; }, 10s, "a renewal");
        CHECK(lease.valid());
    }
    const auto token = lease.fencing_token();
    CHECK(lease.release() == hf::ReleaseResult::released);
    waiting.join();
    REQUIRE(got.has_value());
    CHECK(got->fencing_token() > token);
}
