#include "lane.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <ctime>

#include "errors.hpp"

namespace holdfast::redlock {

using spi::Attempt;
using spi::Held;

namespace {

// A server may have closed a connection that was idle for longer: worth one look before sending.
constexpr milliseconds idle_unchecked{100};
// When the matter is decided: how long the other nodes' answers are waited for, so that their next
// request need not wait for this one.
constexpr milliseconds grace{5};

}  // namespace

/// What one round trip asks, and when it is over.
class Lane::Step {
public:
    virtual ~Step() = default;
    virtual bool wants(std::size_t node, boot_clock::time_point now) = 0;
    virtual void write(std::size_t node, Command&) = 0;
    /// True: ask this node once more.
    virtual bool answer(std::size_t node, const Reply&) = 0;
    virtual void missing(std::size_t node, const error_code& why, const std::string& words,
                         bool sent) = 0;
    /// Until when more answers are waited for; not later than now: it is over.
    virtual boot_clock::time_point until(boot_clock::time_point now) = 0;
    const Script* script = nullptr;
};

Lane::Lane(std::shared_ptr<Fabric> f) : fabric_(std::move(f)) {
    for (const auto& node : fabric_->set->nodes)
        links_.push_back(std::make_unique<LaneLink>(*node));
    polled_.reserve(links_.size());
    polled_nodes_.reserve(links_.size());
}

void Lane::use(std::string_view name) {
    if (name == name_ && !name_.empty()) return;
    name_.clear();
    keys_.assign(fabric_->set->options.prefix, name);
    name_ = name;
}

void Lane::look(std::size_t node, boot_clock::time_point now) {
    if (now < next_look_) return;
    next_look_ = now + milliseconds(20);
    asio::post(fabric_->executor, [line = fabric_->lines[node]] { line->look(); });
}

void Lane::owe(std::size_t node, std::string_view value, boot_clock::time_point again,
               milliseconds ttl) {
    asio::post(fabric_->executor, [f = fabric_, node, key = keys_.lock, v = std::string(value),
                                   again, ttl] { f->owe(node, key, v, again, ttl); });
}

void Lane::open_links(boot_clock::time_point now) {
    const bool idle = now - used_ > idle_unchecked;
    used_ = now;
    for (auto& link : links_) {
        if (idle) link->check();
        link->drain(now);
        if (link->overdue(now, fabric_->set->options.patience)) {
            link->close(redis::make(redis::Error::no_answer));
            link->node().set_down(link->why(), {});
            look(link->node().index, now);
        }
        if (link->state() != LaneLink::State::closed || link->node().down()) continue;
        link->connect(now);
    }
}

void Lane::broke(Step& step, std::size_t node) {
    LaneLink& link = *links_[node];
    const auto& why = link.why();
    // Cut off in the middle is one thing; not to be reached, or silent, another.
    if (!asked_[node] || why != redis::make(redis::Error::closed)) {
        if (why != redis::make(redis::Error::unresolved)) link.node().set_down(why, link.words());
        look(node, boot_clock::now());
    }
    if (part_[node]) step.missing(node, why, link.words(), asked_[node]);
    part_[node] = false;
}

void Lane::read(Step& step, std::size_t node, boot_clock::time_point now) {
    LaneLink& link = *links_[node];
    unsigned number = 0;
    while (const Reply* r = link.next(number)) {
        if (number != step_ || !part_[node]) continue;
        if (link.node().down()) look(node, now);
        if (step.script != nullptr && redis::forgotten(*r)) {
            step.write(node, command_);
            redis::with_text(command_, *step.script);
            link.put(command_, step_, now);
        } else if (step.answer(node, *r)) {
            step.write(node, command_);
            link.put(command_, step_, now);
        } else {
            part_[node] = false;
        }
    }
}

void Lane::drive(Step& step, boot_clock::time_point now, boot_clock::time_point deadline) {
    const std::size_t n = links_.size();
    const auto patience = fabric_->set->options.patience;
    ++step_;
    part_.assign(n, false);
    asked_.assign(n, false);
    const auto send = [&](std::size_t i) {
        step.write(i, command_);
        asked_[i] = true;
        links_[i]->put(command_, step_, now);
    };
    for (std::size_t i = 0; i < n; ++i) {
        LaneLink& link = *links_[i];
        if (!step.wants(i, now)) continue;
        part_[i] = true;
        // A connection of our own that works is better news than what others found out.
        if (link.node().down() && !link.ready()) {
            step.missing(i, link.node().why(), {}, false);
            part_[i] = false;
            look(i, now);
            continue;
        }
        if (link.ready()) send(i);
        if (link.state() == LaneLink::State::closed) broke(step, i);
    }
    for (;;) {
        const auto limit = std::min(step.until(now), deadline);
        if (limit <= now) return;
        polled_.clear();
        polled_nodes_.clear();
        auto wake = limit;
        for (std::size_t i = 0; i < n; ++i) {
            if (!part_[i]) continue;
            polled_.push_back({links_[i]->descriptor(), links_[i]->events(), 0});
            polled_nodes_.push_back(i);
            wake = std::min(wake, links_[i]->quiet_since() + patience);
        }
        if (polled_.empty()) return;
        const auto left = std::max<boot_clock::duration>(wake - now, std::chrono::microseconds(1));
        timespec wait{};
        wait.tv_sec = static_cast<time_t>(left / std::chrono::seconds(1));
        wait.tv_nsec = static_cast<long>((left % std::chrono::seconds(1)).count());
        const int found = ::ppoll(polled_.data(), polled_.size(), &wait, nullptr);
        now = boot_clock::now();
        if (found < 0 && errno != EINTR) return;
        for (std::size_t k = 0; k < polled_.size(); ++k) {
            const std::size_t i = polled_nodes_[k];
            LaneLink& link = *links_[i];
            if (polled_[k].revents != 0) {
                if (link.advance(now)) {
                    if (step.wants(i, now)) {
                        send(i);
                    } else {
                        step.missing(i, {}, {}, false);
                        part_[i] = false;
                    }
                }
                read(step, i, now);
            } else if (now >= link.quiet_since() + patience) {
                link.close(redis::make(redis::Error::no_answer));
            }
            if (link.state() == LaneLink::State::closed && part_[i]) broke(step, i);
        }
    }
}

// --- attempt
// ------------------------------------------------------------------------------------

class Lane::VoteStep final : public Lane::Step {
public:
    VoteStep(Lane& lane, const Attempt& a, const std::string& value)
        : lane_(lane), set_(*lane.fabric_->set), a_(a), value_(value) {
        if (set_.options.fencing) script = &Scripts::all().enter.one;
        lane_.tally_.begin(set_.size());
        again_.assign(set_.size(), false);
    }
    void propose(std::uint64_t number, boot_clock::time_point now) {
        decided_ = {};
        token = number;
        if (set_.options.fencing)
            texts.assign(token, static_cast<std::int64_t>(set_.propose(now) / 1000), a_.ttl);
    }
    bool wants(std::size_t node, boot_clock::time_point now) override {
        const Vote& v = lane_.tally_.at(node);
        if (token_rounds_ > 0) return v.holds() || v.kind == Vote::Kind::waiting;
        if (set_.nodes[node]->votes(now)) return true;
        lane_.tally_.set(node, {.kind = Vote::Kind::missing});
        return false;
    }
    void raise(boot_clock::time_point now) {
        const auto next = std::max(lane_.tally_.next_token(), token + 1);
        ++token_rounds_;
        propose(next, now);
    }
    void write(std::size_t node, Command& c) override {
        lane_.tally_.set(node, {.kind = Vote::Kind::waiting});
        const auto till = set_.nodes[node]->shared->clock.server_ms(a_.deadline);
        add_enter(c, lane_.keys_, value_, a_.ttl, till, texts, !set_.options.fencing);
    }
    bool answer(std::size_t node, const Reply& r) override {
        Vote v = vote_from(r, !set_.options.fencing);
        if (v.kind == Vote::Kind::late && !again_[node]) {
            again_[node] = true;
            set_.nodes[node]->shared->clock.sample(late_time(r) * 1000, boot_clock::now());
            return true;
        }
        lane_.tally_.set(node, std::move(v));
        return false;
    }
    void missing(std::size_t node, const error_code& why, const std::string& words,
                 bool sent) override {
        lane_.tally_.set(node,
                         {.kind = Vote::Kind::missing, .why = why, .words = words, .acted = sent});
    }
    boot_clock::time_point until(boot_clock::time_point now) override {
        const auto verdict = lane_.tally_.verdict();
        if (verdict == Tally::Verdict::open) return boot_clock::time_point::max();
        if (verdict == Tally::Verdict::granted || verdict == Tally::Verdict::raise) return now;
        // Lost: what the others took has to be given back, so better hear from them.
        if (decided_ == boot_clock::time_point{}) decided_ = now;
        for (const auto& node : set_.nodes)
            if (lane_.part_[node->index] && !node->slow(now)) return decided_ + grace;
        return now;
    }
    std::uint64_t token = 0;
    TokenTexts texts;

private:
    Lane& lane_;
    NodeSet& set_;
    const Attempt& a_;
    const std::string& value_;
    std::vector<bool> again_;
    unsigned token_rounds_ = 0;
    boot_clock::time_point decided_{};
};

void Lane::attempt(Attempt& a) noexcept {
    try {
        try_attempt(a);
    } catch (const std::exception&) {
        a.outcome = Attempt::Doubt{make_error_code(boost::system::errc::not_enough_memory)};
    }
}

void Lane::try_attempt(Attempt& a) {
    NodeSet& set = *fabric_->set;
    if (a.ttl > set.options.max_ttl || set.refused(&a.detail) || set.up() < set.quorum()) {
        a.outcome = Attempt::Failed{make(Error::no_quorum)};  // the engine finds the words for it
        return;
    }
    use(a.name);
    Place& place = place_of(a.place);
    place.begin(a.owner);
    open_links(a.sent);
    VoteStep step(*this, a, place.value);
    step.propose(set.options.fencing ? set.propose(a.sent) : 0, a.sent);
    auto now = a.sent;
    Tally::Verdict verdict{};
    for (;;) {
        drive(step, now, a.deadline);
        verdict = tally_.verdict();
        now = boot_clock::now();
        if (verdict != Tally::Verdict::raise || now >= a.deadline) break;
        step.raise(now);
    }
    // Found out on the way: the configuration is wrong.
    if (verdict != Tally::Verdict::granted || set.refused(&a.detail))
        return lost(a, tally_, verdict);
    last_value_ = place.value;
    last_links_.resize(links_.size());
    for (std::size_t i = 0; i < links_.size(); ++i) {
        last_links_[i] = links_[i]->generation();
        const Vote& v = tally_.at(i);
        if ((v.kind == Vote::Kind::waiting && asked_[i]) ||
            (v.kind == Vote::Kind::missing && v.acted))
            Place::may_arrive(place, place.loose, i, a.deadline);
        // Its connection was still on its way: the engine takes the lock there, too.
        if (v.kind != Vote::Kind::waiting || asked_[i]) continue;
        Place::may_arrive(place, place.repairs, i, a.deadline);
        asio::post(fabric_->executor,
                   [f = fabric_, i, keys = keys_, value = place.value, ttl = a.ttl,
                    texts = step.texts, deadline = a.deadline,
                    keep = a.place] { f->extend(i, keys, value, ttl, texts, deadline, keep); });
    }
    set.saw(step.token);
    Attempt::Granted g;
    g.token.value = step.token;
    g.ttl = a.ttl;
    g.base = a.sent;
    a.outcome = g;
}

void Lane::lost(Attempt& a, const Tally& tally, Tally::Verdict verdict) {
    Place& place = place_of(a.place);
    const auto now = boot_clock::now();
    for (std::size_t i = 0; i < links_.size(); ++i) {
        const Vote& v = tally.at(i);
        const bool unknown = (v.kind == Vote::Kind::waiting && asked_[i]) ||
                             (v.kind == Vote::Kind::missing && v.acted);
        if (v.kind == Vote::Kind::waiting && part_[i]) links_[i]->node().set_slow(now);
        if (v.holds() || unknown)
            owe(i, place.value, unknown ? a.deadline : boot_clock::time_point::min(), a.ttl);
    }
    place.value.clear();
    if (verdict == Tally::Verdict::contended) {
        auto look_again = std::min(a.ttl / 3, milliseconds(1000));
        const auto left = tally.busy_for();
        if (left >= milliseconds(0)) look_again = std::min(look_again, left + milliseconds(2));
        a.outcome = Attempt::Busy{std::max(look_again, milliseconds(1)), true};
        return;
    }
    a.outcome = Attempt::Failed{tally.why(), fabric_->set->answers()};
    a.detail = tally.words(*fabric_->set, now);
}

// --- release
// ------------------------------------------------------------------------------------

class Lane::ReleaseStep final : public Lane::Step {
public:
    ReleaseStep(Lane& lane, std::string_view value) : lane_(lane), value_(value) {
        script = &Scripts::all().release.one;
        told.assign(lane.links_.size(), false);
    }
    bool wants(std::size_t, boot_clock::time_point) override { return true; }
    void write(std::size_t, Command& c) override { add_release(c, lane_.keys_, value_); }
    bool answer(std::size_t node, const Reply& r) override {
        const std::size_t before = tally.answered();
        tally.add(r);
        told[node] = tally.answered() > before;
        return false;
    }
    void missing(std::size_t, const error_code&, const std::string&, bool) override {}
    boot_clock::time_point until(boot_clock::time_point now) override {
        if (tally.ones < lane_.fabric_->set->quorum()) return boot_clock::time_point::max();
        if (decided_ == boot_clock::time_point{}) decided_ = now;
        for (const auto& link : lane_.links_)
            if (lane_.part_[link->node().index] && !link->node().slow(now)) return decided_ + grace;
        return now;
    }
    Released tally;
    std::vector<bool> told;

private:
    Lane& lane_;
    const std::string_view value_;
    boot_clock::time_point decided_{};
};

void Lane::release(Held& h) noexcept {
    h.released = ReleaseResult::unreachable;
    try {
        try_release(h);
    } catch (const std::exception&) {
        // Core releases it by the engine's connections.
    }
}

void Lane::try_release(Held& h) {
    Place* const place = find_place(h.place);
    const NodeSet& set = *fabric_->set;
    if (place == nullptr || set.up() < set.quorum()) return;
    place->leaving = true;
    // Looked at before anything is sent: what arrives meanwhile may do so after our release.
    std::array<boot_clock::time_point, 32> in_order{}, any_order{};
    for (std::size_t i = 0; i < links_.size(); ++i) {
        in_order[i] = place->under_way(i, true);
        any_order[i] = place->under_way(i);
    }
    use(h.name);
    open_links(h.sent);
    ReleaseStep step(*this, place->value);
    drive(step, h.sent, h.deadline);
    h.released = step.tally.result(links_.size());
    if (h.released == ReleaseResult::unreachable) return;
    const auto now = boot_clock::now();
    for (std::size_t i = 0; i < links_.size(); ++i) {
        // An answer over the connection of the round's own request came after that one's.
        const bool same = last_value_ == place->value && last_links_[i] == links_[i]->generation();
        const auto again = same && step.told[i] ? in_order[i] : any_order[i];
        if (part_[i]) links_[i]->node().set_slow(now);
        if (!step.told[i] || again > h.sent) owe(i, place->value, again, h.ttl);
    }
}

}  // namespace holdfast::redlock
