// Hand-offs among many waiters, with the scripts as they are shipped and rounds without sockets: a
// simulated network in which requests and messages are late, lost, and messages are doubled. It
// decides how many nodes must have told a waiter before it asks (docs/adr/0044).
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <queue>
#include <random>
#include <set>

#include "catch.hpp"
#include "node.hpp"

using namespace redlock_tests;
using namespace std::chrono_literals;
using holdfast::spi::Attempt;
using Moment = boot_clock::time_point;
using std::chrono::microseconds;

namespace {

struct Network {
    std::uint64_t seed = 1;
    int lost = 0, late = 0, message_lost = 0, doubled = 0;  ///< of a thousand
    std::size_t nodes = 5, waiters = 100, hand_offs = 200, tellers = 3;
    bool listens = true;
    bool knows = true;  ///< a newcomer's client knows that others wait
};

struct Outcome {
    std::size_t granted = 0, requests = 0, looks = 0, told = 0, passed = 0, beside = 0;
    std::vector<microseconds> took;  ///< from a release to the next grant
    double each() const { return static_cast<double>(requests) / static_cast<double>(granted); }
    microseconds middle() { return within(50); }
    microseconds slowest() { return within(99); }
    microseconds within(std::size_t of_a_hundred) {
        std::sort(took.begin(), took.end());
        return took[took.size() * of_a_hundred / 100];
    }
};

class Bed final : rl::CleanUp {
public:
    explicit Bed(const Network& n) : net_(n), random_(n.seed), nodes_(n.nodes) {
        voters_.n = n.nodes;
        voters_.bed = this;
        for (Node& node : nodes_)
            node.wire.listeners["c"] = 1;
    }
    Outcome run() {
        for (std::size_t i = 0; i < net_.waiters; ++i)
            come(microseconds(i * 200));
        while (out_.granted < net_.hand_offs && !events_.empty() && now_ < start + 10min) {
            const Event next = events_.top();
            events_.pop();
            now_ = std::max(now_, next.at);
            next.act();
        }
        return out_;
    }

private:
    struct Waiter {
        std::string owner;
        Attempt attempt;
        std::shared_ptr<rl::AcquireRound> round;
        Moment came{}, look{}, until{};
        int open = 0;
        bool woken = false, holds = false, over = false, decided = false;
    };
    struct Event {
        Moment at;
        std::uint64_t number;
        std::function<void()> act;
        bool operator<(const Event& o) const {
            return std::pair(at, number) > std::pair(o.at, o.number);
        }
    };
    struct Clocks final : FakeVoters {
        const Bed* bed = nullptr;
        std::uint64_t propose(Moment at) const override {
            return static_cast<std::uint64_t>(
                1'000'000'000'000'000 +
                std::chrono::duration_cast<microseconds>(at.time_since_epoch()).count());
        }
    };

    bool chance(int of_a_thousand) { return static_cast<int>(random_() % 1000) < of_a_thousand; }
    microseconds way() {
        if (chance(net_.late)) return microseconds(random_() % 30'000);
        return microseconds(30 + random_() % 90);
    }
    void after(boot_clock::duration d, std::function<void()> act) {
        events_.push({now_ + d, ++numbers_, std::move(act)});
    }
    void come(microseconds in) {
        after(in, [this] {
            auto w = std::make_shared<Waiter>();
            w->owner = "owner" + std::to_string(++owners_);
            w->attempt.name = "name";
            w->attempt.owner = w->owner;
            w->attempt.ttl = 10s;
            w->attempt.queue = true;
            w->came = now_;
            if (net_.knows && !waiters_.empty()) rl::state_of(w->attempt.place).units = true;
            waiters_.push_back(w);
            look(w);
        });
    }

    /// One attempt: core's part.
    void look(const std::shared_ptr<Waiter>& w) {
        ++out_.looks;
        w->woken = false;
        w->open = 0;
        w->until = Moment::max();
        w->decided = false;
        w->attempt.sent = now_;
        w->attempt.deadline = now_ + 1s;
        rl::RoundContext c{voters_, *this, "", true, "c", net_.listens};
        w->round = std::make_shared<rl::AcquireRound>(c, w->attempt);
        w->round->begin(now_);
        advance(w, w->round);
    }
    void advance(const std::shared_ptr<Waiter>& w, const std::shared_ptr<rl::AcquireRound>& r) {
        if (w->round != r) return;
        const auto phase = r->phase(now_);
        // The driver's part: what is decided still waits for answers.
        if (phase == rl::Round::Phase::decided && w->open > 0 && now_ < w->until) {
            if (std::exchange(w->decided, true)) return;
            w->until = now_ + (r->unhurried() ? rl::long_grace : rl::grace);
            return after(w->until - now_, [this, w, r] { advance(w, r); });
        }
        if (phase != rl::Round::Phase::open || now_ >= r->deadline) return finish(w);
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            if (r->wants(i)) {
                ++w->open;
                send(i, r, [this, w, r] {
                    if (w->round == r) --w->open;
                    advance(w, r);
                });
            }
    }
    void finish(const std::shared_ptr<Waiter>& w) {
        w->round->finish(now_);
        w->round.reset();
        w->attempt.repeated = true;
        if (std::holds_alternative<Attempt::Granted>(w->attempt.outcome)) return hold(w);
        const auto* busy = std::get_if<Attempt::Busy>(&w->attempt.outcome);
        boot_clock::duration pause = busy != nullptr ? busy->look_within : 20ms;
        if (busy != nullptr && busy->polling)
            pause = std::min<boot_clock::duration>(pause, microseconds(5000 + random_() % 200'000));
        if (w->woken) pause = 0ms;
        w->look = now_ + pause;
        after(pause, [this, w, at = w->look] {
            if (!w->over && !w->round && w->look == at) look(w);
        });
    }
    void wake(const std::shared_ptr<Waiter>& w) {
        ++out_.told;
        w->woken = true;
        if (w->round || w->over) return;
        w->look = {};
        look(w);
    }
    void hold(const std::shared_ptr<Waiter>& w) {
        for (const auto& other : waiters_) {
            if (other->holds) ++out_.beside;
            if (!other->over && other != w && other->came + 1s < w->came) ++out_.passed;
        }
        w->over = w->holds = true;
        ++out_.granted;
        if (released_ != Moment{})
            out_.took.push_back(std::chrono::duration_cast<microseconds>(now_ - released_));
        after(microseconds(200), [this, w] { release(w); });
    }
    void release(const std::shared_ptr<Waiter>& w) {
        w->holds = false;
        released_ = now_;
        auto held = std::make_shared<holdfast::spi::Held>();
        held->name = "name", held->owner = w->owner, held->ttl = 10s;
        held->place = w->attempt.place;
        held->sent = now_, held->deadline = now_ + 1s;
        const auto r = std::make_shared<rl::ReleaseRound>(
            rl::RoundContext{voters_, *this, "", true}, *held, true);
        r->begin(now_);
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            send(i, r, [held, w] {});
        after(20ms, [this, r] { r->finish(now_); });
        std::erase(waiters_, w);
        come(microseconds(0));
    }

    // --- the network
    void send(std::size_t i, const std::shared_ptr<rl::Round>& r, std::function<void()> then) {
        ++out_.requests;
        const unsigned number = r->asked(i);
        if (chance(net_.lost))
            return after(250ms, [i, r, number, then] {
                r->missing(i, number, {}, true);
                then();
            });
        after(way(), [this, i, r, number, then, ask = r->request()] {
            auto reply = std::make_shared<Reply>(at_node(i, ask));
            after(way(), [this, i, r, number, then, reply] {
                r->answered(i, number, *reply, now_);
                then();
            });
        });
    }
    Reply at_node(std::size_t i, const Ask& ask) {
        Node& node = nodes_[i];
        node.wire.published.clear();
        Reply reply = node.run(ask, now_);
        for (const auto& [channel, owner] : node.wire.published) {
            if (chance(net_.message_lost)) continue;
            for (int n = chance(net_.doubled) ? 2 : 1; n > 0; --n)
                after(way(), [this, i, owner = owner] { told(i, owner); });
        }
        return reply;
    }
    void told(std::size_t node, const std::string& owner) {
        for (const auto& w : waiters_) {
            if (w->owner != owner || w->over) continue;
            rl::OwnerState& p = *rl::find_state(w->attempt.place);
            p.told |= 1U << node;
            if (static_cast<std::size_t>(__builtin_popcount(p.told)) < net_.tellers) return;
            p.told = 0;
            return wake(w);
        }
    }
    void owe(std::size_t node, const Ask& release, Moment again, milliseconds) override {
        ++out_.requests;
        after(way(), [this, node, release] { at_node(node, release); });
        if (again > now_)
            after(again - now_ + 1ms, [this, node, release] { at_node(node, release); });
    }
    void acquire_late(std::size_t, const Ask&, const std::shared_ptr<void>&) override {}

    static constexpr Moment start{std::chrono::hours(1)};
    const Network net_;
    std::mt19937_64 random_;
    std::vector<Node> nodes_;
    Clocks voters_;
    Moment now_ = start, released_{};
    std::priority_queue<Event> events_;
    std::uint64_t numbers_ = 0, owners_ = 0;
    std::vector<std::shared_ptr<Waiter>> waiters_;
    Outcome out_;
};

}  // namespace

TEST_CASE("hand-off: the first in line asks when a majority has told it, and nobody else",
          "[handoff]") {
    Network net;
    net.nodes = GENERATE(3U, 5U);
    net.tellers = net.nodes / 2 + 1;
    net.late = GENERATE(0, 100);
    net.hand_offs = 400;
    Outcome all = Bed(net).run();
    std::cout << net.nodes << " nodes, " << net.late / 10
              << " % of what is sent late: " << all.each() << " requests, " << all.middle().count()
              << " us to the next holder\n";
    CHECK(all.granted == net.hand_offs);
    CHECK(all.beside == 0);
    CHECK(all.passed == 0);
    if (net.late != 0) return;
    CHECK(all.each() <= 4.0 * static_cast<double>(net.nodes));
    CHECK(all.middle() <= 1500us);
}

TEST_CASE("hand-off: one that asks at the first node's word asks in vain where messages are late",
          "[handoff]") {
    Network net;
    net.late = 100;
    net.hand_offs = 400;
    Outcome majority = Bed(net).run();
    net.tellers = 1;
    Outcome first = Bed(net).run();
    std::cout << "told by one: " << first.each() << " requests, within " << first.slowest().count()
              << " us; by a majority: " << majority.each() << ", " << majority.slowest().count()
              << " us\n";
    CHECK(first.each() > 1.2 * majority.each());
    CHECK(first.slowest() > 2 * majority.slowest());
}

TEST_CASE("hand-off: lost, late and doubled messages and requests let nobody in beside another",
          "[handoff]") {
    const int seed = GENERATE(1, 2, 3, 4, 5, 6);
    Network net;
    net.seed = static_cast<std::uint64_t>(seed);
    net.waiters = 20;
    net.hand_offs = 60;
    net.late = 50;
    net.lost = seed % 2 == 0 ? 20 : 0;
    net.message_lost = seed % 3 == 0 ? 1000 : 300;
    net.doubled = 300;
    INFO("seed " << seed);
    Outcome all = Bed(net).run();
    CHECK(all.granted == net.hand_offs);
    CHECK(all.beside == 0);
    CHECK(all.passed == 0);
}

TEST_CASE("hand-off: one that does not know of others leaves its mark at every node it asks",
          "[handoff]") {
    Network net;
    net.knows = false;
    net.waiters = GENERATE(2U, 3U, 10U, 100U);
    net.hand_offs = 1000;
    Outcome all = Bed(net).run();
    std::cout << net.waiters << " waiters that do not know of each other: " << all.each()
              << " requests, " << all.middle().count() << " us, of a hundred hand-offs all but one "
              << "within " << all.slowest().count() << " us\n";
    CHECK(all.granted == net.hand_offs);
    CHECK(all.beside == 0);
    CHECK(all.passed == 0);
    CHECK(all.each() <= 5.0 * static_cast<double>(net.nodes));
    CHECK(all.slowest() <= 5ms);
}
