// What is owed at one node: when it is sent, sent again, and forgotten.
#include "pending_releases.hpp"

#include <string>
#include <vector>

#include "five.hpp"

using namespace redlock_tests;
using holdfast::boot_clock;
using holdfast::redlock::PendingRelease;
using holdfast::redlock::PendingReleases;
using holdfast::redlock::release_ask;

namespace {

constexpr boot_clock::time_point start{1000s};
constexpr auto never = boot_clock::time_point::min();

std::vector<std::string> paid(PendingReleases& pending, boot_clock::time_point at) {
    std::vector<std::string> out;
    pending.send_due(at, [&](const PendingRelease& d) {
        const auto& words = *d.release.words;
        out.push_back(words.front() + "=" + d.value);
    });
    return out;
}

using Sent = std::vector<std::string>;

}  // namespace

TEST_CASE("pending releases: sent once, and over with the answer") {
    PendingReleases pending;
    CHECK(pending.due() == boot_clock::time_point::max());
    pending.add(release_ask("k", "v"), never, start + 10s, true);
    CHECK(pending.due() <= start);
    CHECK(pending.open());
    CHECK(paid(pending, start) == Sent{"k=v"});
    CHECK(paid(pending, start + 1s).empty());
    CHECK_FALSE(pending.empty());
    pending.answered("v", start, false, start + 1s);
    CHECK(pending.empty());
    pending.answered("v", start, false, start + 1s);  // it may have been sent twice
}

TEST_CASE("pending releases: as long as something may still arrive they are sent again") {
    PendingReleases pending;
    pending.add(release_ask("k", "v"), start + 100ms, start + 10s, true);
    CHECK(paid(pending, start) == Sent{"k=v"});
    pending.answered("v", start, false, start);
    CHECK_FALSE(pending.open());
    CHECK(pending.due() == start + 20ms);
    CHECK(paid(pending, start + 20ms) == Sent{"k=v"});
    pending.answered("v", start + 20ms, false, start + 90ms);
    CHECK(pending.due() == start + 100ms);  // the next pause would be longer than need be
    CHECK(paid(pending, start + 100ms) == Sent{"k=v"});
    pending.answered("v", start + 100ms, false, start + 101ms);
    CHECK(pending.empty());
}

TEST_CASE("pending releases: a node that refuses is asked again, until the key is gone by itself") {
    PendingReleases pending;
    pending.add(release_ask("k", "v"), never, start + 1s, true);
    CHECK(paid(pending, start) == Sent{"k=v"});
    pending.answered("v", start, true, start);
    CHECK(pending.due() == start + 250ms);
    CHECK(paid(pending, start + 250ms) == Sent{"k=v"});
    CHECK(pending.due() == start + 1s);
    CHECK(paid(pending, start + 1s).empty());
    CHECK(pending.empty());
}

TEST_CASE("pending releases: kept while the node cannot be told, then all are sent") {
    PendingReleases pending;
    pending.add(release_ask("a", "1"), never, start + 10s, false);
    pending.add(release_ask("b", "2"), start + 5s, start + 20s, true);
    CHECK(paid(pending, start) == Sent{"b=2"});
    pending.answered("2", start, false, start);
    pending.suspend();
    CHECK(pending.open());
    CHECK(paid(pending, start + 9s).empty());
    CHECK(paid(pending, start + 10s).empty());
    pending.resume();
    CHECK(paid(pending, start + 11s) == Sent{"b=2"});  // the other one was over
    pending.answered("2", start + 11s, false, start + 11s);
    CHECK(pending.empty());
}

TEST_CASE("pending releases: the same value owed twice is one debt, of the longer time") {
    PendingReleases pending;
    pending.add(release_ask("k", "v"), never, start + 1s, true);
    CHECK(paid(pending, start) == Sent{"k=v"});
    pending.add(release_ask("k", "v"), start + 2s, start + 5s, true);
    CHECK(paid(pending, start) == Sent{"k=v"});
    pending.answered("v", start, false, start);
    CHECK_FALSE(pending.empty());
    CHECK(paid(pending, start + 2s) == Sent{"k=v"});
    pending.answered("v", start + 2s, false, start + 2s);
    CHECK(pending.empty());
}
