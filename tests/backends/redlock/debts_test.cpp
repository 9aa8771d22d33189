// What is owed at one node: when it is sent, sent again, and forgotten.
#include "debts.hpp"

#include <string>
#include <vector>

#include "five.hpp"

using namespace redlock_tests;
using holdfast::boot_clock;
using holdfast::redlock::Debt;
using holdfast::redlock::Debts;
using holdfast::redlock::release_ask;

namespace {

constexpr boot_clock::time_point start{1000s};
constexpr auto never = boot_clock::time_point::min();

std::vector<std::string> paid(Debts& debts, boot_clock::time_point at) {
    std::vector<std::string> out;
    debts.pay(at, [&](const Debt& d) {
        const auto& words = *d.release.words;
        out.push_back(words.front() + "=" + d.value);
    });
    return out;
}

using Sent = std::vector<std::string>;

}  // namespace

TEST_CASE("debts: sent once, and over with the answer") {
    Debts debts;
    CHECK(debts.due() == boot_clock::time_point::max());
    debts.add(release_ask("k", "v"), never, start + 10s, true);
    CHECK(debts.due() <= start);
    CHECK(debts.open());
    CHECK(paid(debts, start) == Sent{"k=v"});
    CHECK(paid(debts, start + 1s).empty());
    CHECK_FALSE(debts.empty());
    debts.answered("v", start, false, start + 1s);
    CHECK(debts.empty());
    debts.answered("v", start, false, start + 1s);  // it may have been sent twice
}

TEST_CASE("debts: as long as something may still arrive they are sent again") {
    Debts debts;
    debts.add(release_ask("k", "v"), start + 100ms, start + 10s, true);
    CHECK(paid(debts, start) == Sent{"k=v"});
    debts.answered("v", start, false, start);
    CHECK_FALSE(debts.open());
    CHECK(debts.due() == start + 20ms);
    CHECK(paid(debts, start + 20ms) == Sent{"k=v"});
    debts.answered("v", start + 20ms, false, start + 90ms);
    CHECK(debts.due() == start + 100ms);  // the next pause would be longer than need be
    CHECK(paid(debts, start + 100ms) == Sent{"k=v"});
    debts.answered("v", start + 100ms, false, start + 101ms);
    CHECK(debts.empty());
}

TEST_CASE("debts: a node that refuses is asked again, until the key is gone by itself") {
    Debts debts;
    debts.add(release_ask("k", "v"), never, start + 1s, true);
    CHECK(paid(debts, start) == Sent{"k=v"});
    debts.answered("v", start, true, start);
    CHECK(debts.due() == start + 250ms);
    CHECK(paid(debts, start + 250ms) == Sent{"k=v"});
    CHECK(debts.due() == start + 1s);
    CHECK(paid(debts, start + 1s).empty());
    CHECK(debts.empty());
}

TEST_CASE("debts: kept while the node cannot be told, then all are sent") {
    Debts debts;
    debts.add(release_ask("a", "1"), never, start + 10s, false);
    debts.add(release_ask("b", "2"), start + 5s, start + 20s, true);
    CHECK(paid(debts, start) == Sent{"b=2"});
    debts.answered("2", start, false, start);
    debts.suspend();
    CHECK(debts.open());
    CHECK(paid(debts, start + 9s).empty());
    CHECK(paid(debts, start + 10s).empty());
    debts.resume();
    CHECK(paid(debts, start + 11s) == Sent{"b=2"});  // the other one was over
    debts.answered("2", start + 11s, false, start + 11s);
    CHECK(debts.empty());
}

TEST_CASE("debts: the same value owed twice is one debt, of the longer time") {
    Debts debts;
    debts.add(release_ask("k", "v"), never, start + 1s, true);
    CHECK(paid(debts, start) == Sent{"k=v"});
    debts.add(release_ask("k", "v"), start + 2s, start + 5s, true);
    CHECK(paid(debts, start) == Sent{"k=v"});
    debts.answered("v", start, false, start);
    CHECK_FALSE(debts.empty());
    CHECK(paid(debts, start + 2s) == Sent{"k=v"});
    debts.answered("v", start + 2s, false, start + 2s);
    CHECK(debts.empty());
}
