// Nodes that run the scripts as they are shipped, in Lua 5.1, and a network that does what it
// likes: messages come in any order, late, twice asked for or never.
#pragma once
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../../models/redis/server.hpp"
#include "rounds.hpp"

namespace redlock_tests {

namespace rl = holdfast::redlock;
using holdfast::boot_clock;
using holdfast::milliseconds;
using holdfast::spi::Attempt;
using holdfast::spi::Held;
using holdfast::spi::Units;
using rl::Ask;
using rl::Reply;

inline constexpr Units reader{.take = 1, .of = Units::all, .mode = holdfast::Mode::shared};

struct FakeVoters final : rl::Voters {
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

inline Reply text(std::string words) {
    Reply r;
    r.type = Reply::Type::bulk;
    r.text = std::move(words);
    return r;
}

/// How that number `word` of a request is what a test expects: see Ask.
inline std::string word_of(const Ask& a, std::size_t argument) {
    return (*a.words)[a.verb->keys + argument];
}

/// A rule that is left out of the scripts, to see that it is needed.
struct Weaker {
    std::string from, to;
};

/// One node.
class Node {
public:
    Reply run(const Ask& a, boot_clock::time_point at, const Weaker& weaker) {
        static model::Lua lua;
        const auto& words = *a.words;
        std::string script(a.verb->one.text());
        if (const auto place = script.find(weaker.from);
            !weaker.from.empty() && place != script.npos)
            script.replace(place, weaker.from.size(), weaker.to);
        const auto split = words.begin() + static_cast<std::ptrdiff_t>(a.verb->keys);
        std::vector<std::string> arguments(split, words.end());
        if (a.deadline_word != 0)
            arguments[a.deadline_word - a.verb->keys] =
                std::to_string(a.length ? std::max<std::int64_t>(ms_of(a.deadline) - ms_of(at), 0)
                                        : ms_of(a.deadline));
        store.now = ms_of(at);
        const auto answer = lua.run(script, {words.begin(), split}, arguments, store, wire_).at(0);
        if (a.verb != &rl::Scripts::all().release && a.verb != &rl::Scripts::all().leave)
            return text(answer);
        Reply r;
        r.type = Reply::Type::integer;
        r.integer = std::stoll(answer);
        return r;
    }
    /// What stands in the lock's key.
    std::string lock(boot_clock::time_point at) {
        store.now = ms_of(at);
        const auto* v = store.find("name");
        return v == nullptr ? std::string() : v->text;
    }
    model::Store store;

private:
    static std::int64_t ms_of(boot_clock::time_point at) {
        return 1'000'000'000'000 + std::chrono::floor<milliseconds>(at.time_since_epoch()).count();
    }
    model::Wire wire_;
};

class World : public rl::Aftermath {
public:
    World(std::size_t n, unsigned seed) : random_(seed) {
        voters.n = n;
        nodes_.resize(n);
    }
    struct Client {
        Attempt attempt;
        Held held;
        std::string owner;
        std::shared_ptr<rl::Round> round;
        bool over = true;
    };
    void begin(Client& c, std::string owner, Units units = {}) {
        c.owner = std::move(owner);
        c.attempt = {};
        c.attempt.name = "name";
        c.attempt.owner = c.owner;
        c.attempt.ttl = ttl;
        c.attempt.units = units;
        c.attempt.queue = true;
        again(c);
    }
    /// One more attempt of the same acquisition.
    void again(Client& c) {
        c.attempt.sent = now;
        c.attempt.deadline = now + milliseconds(100);
        voters.time = random_() % 4 == 0 ? 0 : time();
        start(c, std::make_shared<rl::AcquireRound>(setting(), c.attempt));
    }
    void renew(Client& c, Units units) {
        hold(c, units);
        start(c, std::make_shared<rl::RenewRound>(setting(), c.held));
    }
    void release(Client& c) {
        hold(c, c.held.units);
        start(c, std::make_shared<rl::ReleaseRound>(setting(), c.held, true));
    }
    /// Lets anything happen until the round is over; the others' rounds go on meanwhile.
    void step(Client& c) {
        now += std::chrono::microseconds(random_() % 2000);
        if (c.over) return happen();
        while (c.round->phase(now) == rl::Round::Phase::open && ask(c)) {
        }
        if (c.round->phase(now) != rl::Round::Phase::open || now >= c.round->deadline) {
            c.round->finish(now);
            c.over = true;
        }
        happen();
    }
    void finish(Client& c) {
        while (!c.over)
            step(c);
    }
    /// Whatever is under way arrives or not, and what is owed is paid.
    void end() {
        now += std::chrono::seconds(1);
        while (!under_way_.empty())
            happen();
        for (const auto& [node, release] : owed_)
            nodes_[node].run(release, now, weaker);
        owed_.clear();
    }
    /// Loses its data; as a rule it does not vote until no lease of before can be valid.
    void restart(std::size_t node, bool votes_at_once) {
        nodes_[node].store = {};
        voters.may_vote[node] = votes_at_once;
    }
    bool nothing_is_held() {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [&](Node& n) { return n.lock(now).empty(); });
    }
    static bool granted(const Client& c) {
        return std::holds_alternative<Attempt::Granted>(c.attempt.outcome);
    }
    static std::uint64_t token(const Client& c) {
        return std::get<Attempt::Granted>(c.attempt.outcome).token.value;
    }
    /// What clients propose and how they are ordered; clocks need not agree with it.
    std::uint64_t time() { return 1'000'000'000'000'000 + random_() % 1000; }
    unsigned dice(std::size_t sides) { return static_cast<unsigned>(random_() % sides); }

    static constexpr milliseconds ttl{10'000};
    boot_clock::time_point now{std::chrono::hours(1)};
    FakeVoters voters;
    Weaker weaker;
    std::set<std::size_t> unreachable;  ///< what is asked there is never sent

private:
    struct Message {
        std::size_t node, connection;
        Ask ask;
        std::function<void(const Reply*)> answer;  // empty: its client has given up on it
    };
    void hold(Client& c, Units units) {
        c.held.name = "name";
        c.held.owner = c.owner;
        c.held.token.value = token(c);
        c.held.units = units;
        c.held.ttl = ttl;
        c.held.place = c.attempt.place;
        c.held.sent = now;
        c.held.deadline = now + milliseconds(100);
    }
    void start(Client& c, std::shared_ptr<rl::Round> round) {
        c.round = std::move(round);
        c.over = false;
        c.round->begin(now);
    }
    rl::Setting setting() { return {voters, *this, "", true}; }
    void owe(std::size_t node, const Ask& release, boot_clock::time_point again,
             milliseconds) override {
        owed_.emplace_back(node, release);
        // At once, and, where something may still arrive, when it cannot any more: see end().
        if (again <= now && random_() % 2 == 0) {
            owed_.pop_back();
            under_way_.push_back({node, ++connections_, release, {}});
        }
    }
    void extend(std::size_t node, const Ask& enter, const std::shared_ptr<void>& place) override {
        under_way_.push_back({node, ++connections_, enter, [place, node](const Reply* r) {
                                  auto& p = *rl::find_place(place);
                                  if (r != nullptr) rl::Place::arrived(p.repairs, node);
                              }});
    }
    bool ask(Client& c) {
        bool any = false;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (!c.round->wants(i)) continue;
            any = true;
            const auto round = c.round;
            const unsigned number = round->asked(i);
            if (random_() % 8 == 0 || unreachable.count(i) != 0) {
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
        const Reply r = nodes_[m.node].run(m.ask, now, weaker);
        if (m.answer) m.answer(fate == 2 ? nullptr : &r);
    }

    std::minstd_rand random_;
    std::vector<Node> nodes_;
    std::vector<Message> under_way_;
    std::vector<std::pair<std::size_t, Ask>> owed_;
    std::size_t connections_ = 1'000'000;
};

}  // namespace redlock_tests
