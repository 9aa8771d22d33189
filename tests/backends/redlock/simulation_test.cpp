// Rounds without sockets: the test is the nodes, the network and the clock, so that requests and
// answers come in any order, late, twice asked for or never. A failure prints its seed, with which
// the same happens again.
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <tuple>

#include "five.hpp"
#include "rounds.hpp"

using namespace redlock_tests;
using namespace holdfast::redlock;
using holdfast::boot_clock;
using holdfast::spi::Attempt;

namespace {

struct FakeVoters final : Voters {
    std::size_t n = 3;
    std::uint64_t time = 1'000'000'000'000'000;  // us; 0: not known yet
    std::vector<bool> may_vote = std::vector<bool>(31, true);
    std::string place = "node";
    std::size_t size() const noexcept override { return n; }
    bool votes(std::size_t i, boot_clock::time_point) const noexcept override {
        return may_vote[i];
    }
    bool answers() const noexcept override { return true; }
    holdfast::error_code refused(std::string*) const override { return {}; }
    std::uint64_t propose(boot_clock::time_point) const override { return time; }
    void saw(std::uint64_t) noexcept override {}
    const std::string& where(std::size_t) const noexcept override { return place; }
    std::string trouble(std::size_t, boot_clock::time_point) const override { return {}; }
};

struct Owed {
    std::size_t node;
    std::string value;
    boot_clock::time_point again;
};

struct Notes final : Aftermath {
    std::vector<Owed> owed;
    std::vector<std::size_t> extended;
    void owe(std::size_t node, const std::string&, const std::string& value,
             boot_clock::time_point again, hf::milliseconds) override {
        owed.push_back({node, value, again});
    }
    void extend(std::size_t node, const Ask&, const std::shared_ptr<void>&) override {
        extended.push_back(node);
    }
    bool owes(std::size_t node) const {
        return std::any_of(owed.begin(), owed.end(), [&](const Owed& o) { return o.node == node; });
    }
};

Reply text(std::string words) {
    Reply r;
    r.type = Reply::Type::bulk;
    r.text = std::move(words);
    return r;
}

/// One acquisition at three nodes, step by step.
struct Stepped {
    Stepped() {
        attempt.name = "name";
        attempt.owner = "me";
        attempt.ttl = 10s;
        attempt.sent = start;
        attempt.deadline = start + 1s;
        round.emplace(Setting{voters, notes, "", true}, attempt);
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
        round->missing(i, number, holdfast::redis::make(holdfast::redis::Error::closed), {}, sent);
    }
    const boot_clock::time_point start{std::chrono::hours(1)};
    FakeVoters voters;
    Notes notes;
    Attempt attempt;
    std::optional<AcquireRound> round;
};

}  // namespace

TEST_CASE("F30: rounds: a later proposal that fails takes nothing from what an earlier one took",
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

TEST_CASE("F80: rounds: a grant counts from its request, and one that is too late is none",
          "[rounds]") {
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
    const auto place = std::make_shared<Place>();
    const boot_clock::time_point start{std::chrono::hours(1)};
    place->begin("me");
    Place::may_arrive(*place, place->loose, 0, start + 10ms);
    Place::may_arrive(*place, place->repairs, 1, start + 10ms);
    ReleaseRound round({voters, notes, "", true}, "name", place, 10s, start + 1s, engine);
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

namespace {

/// Nodes with what the scripts do, and a network that does what it likes.
class World : public Aftermath {
public:
    World(std::size_t n, unsigned seed) : random_(seed) {
        voters.n = n;
        nodes_.resize(n);
    }
    struct Client {
        Attempt attempt;
        std::string owner;
        std::shared_ptr<Round> round;
        bool over = false;
    };
    void begin(Client& c, std::string owner) {
        c.owner = std::move(owner);
        c.attempt = {};
        c.attempt.name = "name";
        c.attempt.owner = c.owner;
        c.attempt.ttl = 10s;
        c.attempt.sent = now;
        c.attempt.deadline = now + 100ms;
        voters.time = random_() % 4 == 0 ? 0 : 1'000'000'000'000'000 + random_() % 1000;
        c.round = std::make_shared<AcquireRound>(setting(), c.attempt);
        c.over = false;
        c.round->begin(now);
    }
    void release(Client& c) {
        c.round = std::make_shared<ReleaseRound>(setting(), "name", c.attempt.place, 10s,
                                                 now + 100ms, true);
        c.over = false;
        c.round->begin(now);
    }
    /// Lets anything happen until the round is over; the others' rounds go on meanwhile.
    void step(Client& c) {
        now += std::chrono::microseconds(random_() % 2000);
        if (c.over) return happen();
        while (c.round->phase(now) == Round::Phase::open && ask(c)) {
        }
        if (c.round->phase(now) != Round::Phase::open || now >= c.round->deadline) {
            c.round->finish(now);
            c.over = true;
        }
        happen();
    }
    /// Whatever is under way arrives or not, and what is owed is paid.
    void end() {
        now += 1s;
        while (!under_way_.empty())
            happen();
        for (const auto& [node, key, value] : owed_)
            nodes_[node].give_back(value);
    }
    bool someone_holds(const std::string& value) const {
        return std::any_of(nodes_.begin(), nodes_.end(),
                           [&](const Node& n) { return n.lock == value; });
    }
    bool nothing_is_held() const {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [](const Node& n) { return n.lock.empty(); });
    }
    bool granted(const Client& c) const {
        return std::holds_alternative<Attempt::Granted>(c.attempt.outcome);
    }
    std::uint64_t token(const Client& c) const {
        return std::get<Attempt::Granted>(c.attempt.outcome).token.value;
    }

    boot_clock::time_point now{std::chrono::hours(1)};
    FakeVoters voters;

private:
    struct Node {
        std::string lock, token = "0", owner;
        void give_back(const std::string& value) {
            if (lock == value) lock.clear();
        }
        Reply run(const Ask& a, boot_clock::time_point at) {
            const auto& w = *a.words;
            if (a.verb == &Scripts::all().release) {
                Reply r;
                r.type = Reply::Type::integer;
                r.integer = lock == w[1] ? 1 : lock.empty() ? 0 : 2;
                give_back(w[1]);
                return r;
            }
            if (at > a.deadline) return text("l 1");
            if (!lock.empty() && lock != w[2]) return text("b 1000");
            lock = w[2];
            if (w[5] == no_proposal || token > w[5] || (token == w[5] && owner != w[2]))
                return text("h " + token);
            token = w[5];
            owner = w[2];
            return text("g");
        }
    };
    struct Message {
        std::size_t node, connection;
        Ask ask;
        std::function<void(const Reply*)> answer;  // empty: its client has given up on it
    };
    Setting setting() { return {voters, *this, "", true}; }
    void owe(std::size_t node, const std::string& key, const std::string& value,
             boot_clock::time_point again, hf::milliseconds) override {
        owed_.push_back({node, key, value});
        // At once, and, where something may still arrive, when it cannot any more: see end().
        if (again <= now && random_() % 2 == 0) {
            owed_.pop_back();
            under_way_.push_back({node, ++connections_, release_ask(key, value), {}});
        }
    }
    void extend(std::size_t node, const Ask& enter, const std::shared_ptr<void>& place) override {
        under_way_.push_back({node, ++connections_, enter, [place, node](const Reply* r) {
                                  auto& p = *find_place(place);
                                  if (r != nullptr) Place::arrived(p.repairs, node);
                              }});
    }
    bool ask(Client& c) {
        bool any = false;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (!c.round->wants(i)) continue;
            any = true;
            const auto round = c.round;
            const unsigned number = round->asked(i);
            if (random_() % 8 == 0) {
                round->missing(i, number, {}, {}, false);
                continue;
            }
            under_way_.push_back({i, 100 * static_cast<std::size_t>(c.owner.front()) + i,
                                  round->request(), [this, round, i, number](const Reply* r) {
                                      if (r != nullptr)
                                          round->answered(i, number, *r, now);
                                      else
                                          round->missing(i, number, {}, {}, true);
                                  }});
        }
        return any;
    }
    /// One message: it arrives and is answered, or its answer is lost, or it is lost, or its
    /// client hears of a broken connection while it is still under way.
    void happen() {
        if (under_way_.empty()) return;
        const std::size_t k = random_() % under_way_.size();
        // What one connection has sent comes in order.
        std::size_t first = 0;
        while (under_way_[first].connection != under_way_[k].connection)
            ++first;
        Message m = std::move(under_way_[first]);
        under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(first));
        const auto fate = random_() % 10;
        if (fate == 0 && m.answer) {
            auto answer = std::exchange(m.answer, {});
            m.connection = ++connections_;
            under_way_.push_back(std::move(m));
            return answer(nullptr);
        }
        if (fate == 1 && m.answer) return m.answer(nullptr);
        const Reply r = nodes_[m.node].run(m.ask, now);
        if (m.answer) m.answer(fate == 2 ? nullptr : &r);
    }

    std::minstd_rand random_;
    std::vector<Node> nodes_;
    std::vector<Message> under_way_;
    std::vector<std::tuple<std::size_t, std::string, std::string>> owed_;
    std::size_t connections_ = 1'000'000;
};

}  // namespace

TEST_CASE("rounds: nobody beside a holder, no token back, nothing left, in any order of messages",
          "[rounds]") {
    const unsigned seed = std::random_device{}();
    int grants = 0, both = 0;
    for (unsigned run = 0; run < 4000; ++run) {
        INFO("seed " << seed << " run " << run);
        World world(run % 2 == 0 ? 3 : 4, seed + run);
        World::Client a, b, c;
        world.begin(a, "a");
        world.begin(b, "b");
        while (!a.over || !b.over)
            world.step(!a.over && !b.over ? (run % 3 == 0 ? b : a) : a.over ? b : a);
        REQUIRE_FALSE((world.granted(a) && world.granted(b)));
        std::uint64_t last = 0;
        for (World::Client* client : {&a, &b}) {
            if (!world.granted(*client)) continue;
            ++grants;
            last = world.token(*client);
            world.release(*client);
            while (!client->over)
                world.step(*client);
        }
        world.begin(c, "c");
        while (!c.over)
            world.step(c);
        if (world.granted(c)) {
            ++grants;
            both += last != 0;
            REQUIRE(world.token(c) > last);
            world.release(c);
            while (!c.over)
                world.step(c);
        }
        world.end();
        REQUIRE(world.nothing_is_held());
    }
    std::cout << "redlock rounds, seed " << seed << ": " << grants << " grants, " << both
              << " after another one\n";
    CHECK(grants > 1000);
    CHECK(both > 100);
}
