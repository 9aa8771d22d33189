// Rounds without sockets: the test is the nodes, the network and the clock, so that requests and
// answers come in any order, late, twice asked for or never.
#include <optional>

#include "five.hpp"
#include "node.hpp"
#include "resp/errors.hpp"

using namespace redlock_tests;
using namespace holdfast::redlock;
using holdfast::boot_clock;
using holdfast::spi::Attempt;

namespace {

struct Owed {
    std::size_t node;
    std::string value;
    boot_clock::time_point again;
};

struct Notes final : CleanUp {
    std::vector<Owed> owed;
    std::vector<std::size_t> extended;
    void owe(std::size_t node, const Ask& release, boot_clock::time_point again,
             hf::milliseconds) override {
        owed.push_back({node, release.value(), again});
    }
    void acquire_late(std::size_t node, const Ask&, const std::shared_ptr<void>&) override {
        extended.push_back(node);
    }
    bool owes(std::size_t node) const {
        return std::any_of(owed.begin(), owed.end(), [&](const Owed& o) { return o.node == node; });
    }
};

/// One acquisition at three nodes, step by step.
struct Stepped {
    Stepped() {
        attempt.name = "name";
        attempt.owner = "me";
        attempt.ttl = 10s;
        attempt.sent = start;
        attempt.deadline = start + 1s;
        round.emplace(RoundContext{voters, notes, "", true}, attempt);
        round->begin(start);
    }
    unsigned ask(std::size_t i) {
        REQUIRE(round->wants(i));
        return round->asked(i);
    }
    void say(std::size_t i, unsigned number, const std::string& words) {
        round->answered(i, number, text(words), start);
    }
    void cut(std::size_t i, unsigned number, bool sent) {
        round->missing(i, number, holdfast::resp::make(holdfast::resp::Error::closed), sent);
    }
    const boot_clock::time_point start{std::chrono::hours(1)};
    FakeVoters voters;
    Notes notes;
    Attempt attempt;
    std::optional<AcquireRound> round;
};

}  // namespace

TEST_CASE("rounds: a later proposal that fails takes nothing from what an earlier one took",
          "[rounds]") {
    const std::string later = GENERATE("unsent", "cut", "busy", "late", "refused");
    INFO(later);
    Stepped s;
    const unsigned first[] = {s.ask(0), s.ask(1), s.ask(2)};
    s.say(0, first[0], "h 5");
    s.cut(2, first[2], false);
    s.say(1, first[1], "h 2000000000000000");
    REQUIRE(s.round->phase(s.start) == Round::Phase::open);  // a higher token
    CHECK_FALSE(s.round->wants(2));
    CHECK(s.round->request().words->back() == "2000000000000001");
    const unsigned second[] = {s.ask(0), s.ask(1)};
    if (later == "unsent") s.cut(0, second[0], false);
    if (later == "cut") s.cut(0, second[0], true);
    if (later == "busy") s.say(0, second[0], "b 1000");
    if (later == "late") s.say(0, second[0], "l 1");
    if (later == "refused") s.say(0, second[0], "k");
    s.say(1, second[1], "g");
    CHECK(s.round->phase(s.start) != Round::Phase::open);
    s.round->finish(s.start);
    CHECK_FALSE(std::holds_alternative<Attempt::Granted>(s.attempt.outcome));
    REQUIRE(s.notes.owes(0));
    CHECK(s.notes.owes(1));
    CHECK_FALSE(s.notes.owes(2));  // nothing ever went there
    // Where a request may still arrive it is given back once more.
    CHECK(s.notes.owed[0].again ==
          (later == "cut" ? s.attempt.deadline : boot_clock::time_point::min()));
}

TEST_CASE("rounds: an answer to an earlier proposal is no vote, but tells what is there",
          "[rounds]") {
    Stepped s;
    const unsigned first[] = {s.ask(0), s.ask(1), s.ask(2)};
    s.say(0, first[0], "h 5");
    s.say(1, first[1], "h 7");
    REQUIRE(s.round->phase(s.start) == Round::Phase::open);
    const unsigned second[] = {s.ask(0), s.ask(1), s.ask(2)};
    s.say(2, first[2], "g");  // the token that was too low
    s.say(0, second[0], "g");
    CHECK(s.round->phase(s.start) == Round::Phase::open);
    s.cut(1, second[1], false);
    s.cut(2, second[2], false);
    s.round->finish(s.start);
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(s.notes.owes(i));
}

TEST_CASE("rounds: a grant counts from its request, and one that is too late is none", "[rounds]") {
    const auto after = GENERATE(hf::milliseconds(9000), hf::milliseconds(9898));
    Stepped s;
    for (std::size_t i = 0; i < 2; ++i)
        s.say(i, s.ask(i), "g");
    CHECK(s.round->phase(s.start + after) == Round::Phase::closed);
    s.round->finish(s.start + after);
    const auto* g = std::get_if<Attempt::Granted>(&s.attempt.outcome);
    CHECK((g != nullptr) == (after == 9000ms));
    if (g != nullptr) CHECK(g->base == s.start);
    // Who was never asked is told by others: nobody can be told by a lost round.
    CHECK(s.notes.extended.size() == (g != nullptr ? 1 : 0));
    CHECK(s.notes.owed.size() == (g != nullptr ? 0 : 2));
}

TEST_CASE("rounds: a release is owed where something may come after it", "[rounds]") {
    const bool engine = GENERATE(false, true);
    FakeVoters voters;
    Notes notes;
    const auto place = std::make_shared<OwnerState>();
    const boot_clock::time_point start{std::chrono::hours(1)};
    place->begin("me");
    OwnerState::may_arrive(*place, place->loose, 0, start + 10ms);
    OwnerState::may_arrive(*place, place->repairs, 1, start + 10ms);
    holdfast::spi::Held held;
    held.name = "name", held.owner = "me";
    held.place = place;
    held.ttl = 10s;
    held.deadline = start + 1s;
    ReleaseRound round({voters, notes, "", true}, held, engine);
    round.begin(start);
    CHECK(place->leaving);
    Reply one;
    one.type = Reply::Type::integer;
    one.integer = 1;
    // The answers come after the moment until which something may arrive: it may have come between
    // the release and its answer.
    const auto later = start + 20ms;
    round.answered(0, round.asked(0), one, later, !engine);
    CHECK(notes.owes(0) == engine);  // over the same connection it came before
    round.answered(1, round.asked(1), one, later, !engine);
    CHECK(notes.owes(1));
    CHECK(round.phase(later) == Round::Phase::decided);
    round.finish(later);
    CHECK(round.result() == hf::ReleaseResult::released);
    CHECK(notes.owes(2));  // never asked
}

TEST_CASE("rounds: a renewal takes nothing away that is being released: the release says so",
          "[rounds]") {
    const bool released = GENERATE(true, false);
    CAPTURE(released);
    FakeVoters voters;
    voters.n = 5;
    Notes notes;
    const RoundContext setting{voters, notes, "", true};
    const boot_clock::time_point start{std::chrono::hours(1)};
    Attempt a;
    a.name = "name", a.owner = "me", a.ttl = 10s, a.sent = start, a.deadline = start + 1s;
    AcquireRound acquire(setting, a);
    acquire.begin(start);
    for (std::size_t i = 0; i < 5; ++i)
        acquire.answered(i, acquire.asked(i), text(i < 3 ? "g" : "b 10"), start);
    acquire.finish(start);
    REQUIRE(std::holds_alternative<Attempt::Granted>(a.outcome));
    holdfast::spi::Held h;
    h.name = "name", h.owner = "me", h.ttl = 10s, h.place = a.place;
    h.sent = start, h.deadline = start + 1s;
    RenewRound renew(setting, h);
    renew.begin(start);
    for (std::size_t i = 0; i < 5; ++i)
        renew.asked(i);
    for (std::size_t i = 3; i < 5; ++i)
        renew.answered(i, 0, text("n"), start);
    // It reaches the first node before the renewal does, which finds a majority without it.
    std::optional<ReleaseRound> release;
    if (released) release.emplace(setting, h, false).begin(start);
    renew.answered(0, 0, text("e"), start);
    REQUIRE(renew.phase(start) == Round::Phase::closed);
    renew.finish(start);
    CHECK(h.renewal == holdfast::spi::Held::Renewal::lost);
    CHECK(notes.owes(1) == !released);
    CHECK(notes.owes(2) == !released);
}

TEST_CASE("rounds: a mark outlasts the pauses of a waiter that is far away", "[rounds]") {
    FakeVoters voters;
    Notes notes;
    boot_clock::time_point now{std::chrono::hours(1)};
    Attempt a;
    a.name = "name", a.owner = "me", a.ttl = 10s, a.queue = true;
    a.units = reader;
    const auto look = [&](hf::milliseconds far) {
        a.sent = now, a.deadline = now + 2s;
        AcquireRound round({voters, notes, "", true}, a);
        round.begin(now);
        const long long window = std::stoll(word_of(round.request(), 6));
        unsigned asked[3];
        for (std::size_t i = 0; i < 3; ++i)
            asked[i] = round.asked(i);
        now += far;
        for (std::size_t i = 0; i < 3; ++i)
            round.answered(i, asked[i], text("b 5000"), now);
        REQUIRE(round.phase(now) != Round::Phase::open);
        round.finish(now);
        return window;
    };
    const auto far = GENERATE(hf::milliseconds(0), hf::milliseconds(280), hf::milliseconds(700));
    INFO(far.count() << " ms");
    CHECK(look(far) == 0);  // it has not waited yet
    now += 1s;
    for (int i = 0; i < 3; ++i) {
        // From the arrival of this request to that of the next one: a round, and the longest pause.
        CHECK(look(far) >= far.count() + 100 + 100);
        CHECK(std::get<Attempt::Busy>(a.outcome).look_within <= 100ms);
        now += 100ms;
    }
}

TEST_CASE("rounds: a node that has the request already is the same one by another address",
          "[rounds]") {
    const std::string already = GENERATE("G", "H 5");
    Stepped s;
    const unsigned first[] = {s.ask(0), s.ask(1), s.ask(2)};
    s.say(0, first[0], already == "G" ? "g" : "h 5");
    s.say(1, first[1], already);
    s.cut(2, first[2], true);
    CHECK(s.round->phase(s.start) != Round::Phase::open);
    s.round->finish(s.start);
    REQUIRE(std::holds_alternative<Attempt::Failed>(s.attempt.outcome));
    CHECK(s.attempt.detail.find("the same server") != std::string::npos);
    CHECK(s.notes.owes(0));
    CHECK(s.notes.owes(1));
}

TEST_CASE("rounds: a higher token is asked for where the request was granted before", "[rounds]") {
    Stepped s;
    const unsigned first[] = {s.ask(0), s.ask(1), s.ask(2)};
    s.say(0, first[0], "h 5");
    s.say(1, first[1], "h 7");
    REQUIRE(s.round->phase(s.start) == Round::Phase::open);
    const unsigned second[] = {s.ask(0), s.ask(1)};
    s.say(0, second[0], "G");
    s.say(1, second[1], "G");
    CHECK(s.round->phase(s.start) == Round::Phase::closed);
    s.round->finish(s.start);
    CHECK(std::holds_alternative<Attempt::Granted>(s.attempt.outcome));
    s.cut(2, first[2], false);
}

TEST_CASE("rounds: a renewal sets the ttl and the lock_delay, and the rest of min_hold",
          "[rounds]") {
    const bool shared = GENERATE(false, true);
    FakeVoters voters;
    Notes notes;
    const auto place = std::make_shared<OwnerState>();
    place->begin("me");
    holdfast::spi::Held h;
    h.name = "name", h.owner = "me", h.ttl = 10s, h.lock_delay = 25s, h.place = place;
    if (shared) h.units = reader;
    const auto set_for = [&] {
        RenewRound round({voters, notes, "", true}, h);
        round.begin(boot_clock::now());
        return std::stoll(word_of(round.request(), 1));
    };
    CHECK(set_for() == 35'000);
    place->closed_until = boot_clock::now() + 60s;
    CHECK(set_for() > 55'000);
    CHECK(set_for() <= 60'000);
}

TEST_CASE("rounds: a renewal and a release without a majority say what the nodes said",
          "[rounds]") {
    FakeVoters voters;
    voters.n = 5;
    Notes notes;
    const boot_clock::time_point start{std::chrono::hours(1)};
    const auto place = std::make_shared<OwnerState>();
    place->begin("me");
    holdfast::spi::Held h;
    h.name = "name", h.owner = "me", h.ttl = 10s, h.place = place;
    h.deadline = start + 1s;
    Reply refused;
    refused.type = Reply::Type::error;
    const std::string words =
        GENERATE("NOPERM no permission to run the command 'pexpire'", "OOM command not allowed");
    refused.text = words;
    const auto expected = words.starts_with("NOPERM") ? errc::denied : errc::no_quorum;
    RenewRound renew({voters, notes, "", true}, h);
    renew.begin(start);
    for (std::size_t i = 0; i < 5; ++i)
        renew.answered(i, renew.asked(i), i < 2 ? text("y") : refused, start);
    renew.finish(start);
    CHECK(h.renewal == holdfast::spi::Held::Renewal::unknown);
    CHECK(h.renewal_error == expected);
    CHECK(h.detail.find(words) != std::string::npos);
    h.detail.clear();
    ReleaseRound release({voters, notes, "", true}, h, true);
    release.begin(start);
    for (std::size_t i = 0; i < 5; ++i)
        release.answered(i, release.asked(i), refused, start, false);
    release.finish(start);
    release.report(h, start);
    CHECK(h.released == hf::ReleaseResult::unreachable);
    CHECK(h.release_error == expected);
    CHECK(h.detail.find(words) != std::string::npos);
}
