#include "rounds.hpp"

#include <algorithm>

#include "errors.hpp"
#include "holdfast/spi/drift.hpp"

namespace holdfast::redlock {

using spi::Attempt;
using spi::Held;

namespace {

/// `enter` and `renew`: the fifth word is the deadline, in each node's own time.
Line::Request timed(const Verb& verb, Line::Words words, boot_clock::time_point deadline) {
    Line::Request r;
    r.verb = &verb;
    r.words = std::move(words);
    r.deadline_word = 4;
    r.deadline = deadline;
    return r;
}

Line::Words enter_words(const Keys& keys, const std::string& value, milliseconds ttl,
                        const TokenTexts& texts) {
    return Line::words(keys.lock, keys.state, value, std::to_string(ttl.count()), "0", texts.token,
                       texts.till);
}

std::int64_t some_time_ms(const NodeSet& set, boot_clock::time_point now) {
    return static_cast<std::int64_t>(set.propose(now) / 1000);
}

}  // namespace

void Fabric::owe(std::size_t node, const std::string& key, const std::string& value,
                 boot_clock::time_point again, milliseconds ttl) const {
    // The key cannot outlive a request that came at the last moment.
    const auto until = std::max(boot_clock::now(), again) + ttl + milliseconds(500);
    lines[node]->owe(key, value, again, until);
}

void Fabric::extend(std::size_t node, const Keys& keys, const std::string& value, milliseconds ttl,
                    const TokenTexts& texts, boot_clock::time_point deadline,
                    const std::shared_ptr<void>& place) const {
    Place* const p = find_place(place);
    if (p == nullptr || p->leaving) {
        if (p != nullptr) Place::arrived(p->repairs, node);
        return;
    }
    Line::Request r = timed(Scripts::all().enter, enter_words(keys, value, ttl, texts), deadline);
    r.wanted = [place] { return !find_place(place)->leaving; };
    r.done = [place, node](const Reply* reply, const error_code&, bool sent) {
        if (reply != nullptr || !sent) Place::arrived(find_place(place)->repairs, node);
    };
    lines[node]->ask(std::move(r), false);
}

Together::Together(const Fabric& f) : fabric_(f) {
    for (const auto& line : fabric_.lines)
        line->gather();
}

Together::~Together() {
    for (const auto& line : fabric_.lines)
        line->send();
}

void Round::arm(std::function<void()> at_deadline) {
    timer_.expires_at(redis::steady(deadline_));
    timer_.async_wait([alive = shared_from_this(), f = std::move(at_deadline)](error_code ec) {
        if (!ec && !alive->finished_) f();
    });
}

void Round::finish() {
    if (std::exchange(finished_, true)) return;
    timer_.cancel();
    const auto done = std::exchange(done_, {});
    if (done) done();
}

// --- acquire
// ------------------------------------------------------------------------------------

Acquire::Acquire(std::shared_ptr<const Fabric> f, Attempt& a, std::function<void()> done)
    : Round(std::move(f), a.deadline, std::move(done)), attempt_(&a), ttl_(a.ttl) {
    Place& place = place_of(a.place);
    keys_.assign(fabric_->set->options.prefix, a.name);
    // Something of an earlier round that was not undone (its grant came too late to be believed).
    if (!place.value.empty())
        for (std::size_t i = 0; i < fabric_->lines.size(); ++i)
            fabric_->owe(i, keys_.lock, place.value, place.under_way(i), ttl_);
    place.begin(a.owner);
    value_ = place.value;
    place_ = a.place;
}

void Acquire::start() {
    const NodeSet& set = *fabric_->set;
    const auto now = boot_clock::now();
    propose(set.options.fencing ? set.propose(now) : 0, now);
    sent_.assign(set.size(), false);
    tally_.begin(set.size());
    arm([this] {
        for (std::size_t i = 0; i < fabric_->set->size(); ++i)
            if (tally_.at(i).kind == Vote::Kind::waiting)
                tally_.set(
                    i, {.kind = Vote::Kind::missing, .why = redis::make(redis::Error::no_answer)});
        judge();
    });
    std::string ignored;
    const bool wrong = static_cast<bool>(set.refused(&ignored));
    for (std::size_t i = 0; i < set.size(); ++i) {
        if (!set.nodes[i]->votes(now))
            fabric_->warn(set.nodes[i]->where +
                          ": it started not long ago and does not vote before max_ttl has passed; "
                          "durable=yes, where it keeps every write, lets it vote at once");
        if (wrong || !set.nodes[i]->votes(now))
            tally_.set(i, {.kind = Vote::Kind::missing}), fabric_->lines[i]->look();
        else
            ask(i);
    }
    starting_ = false;
    judge();
}

void Acquire::propose(std::uint64_t token, boot_clock::time_point now) {
    token_ = token;
    if (!fabric_->set->options.fencing) {
        words_ = Line::words("SET", keys_.lock, value_, "NX", "PX", std::to_string(ttl_.count()));
        return;
    }
    TokenTexts texts;
    texts.assign(token_, some_time_ms(*fabric_->set, now), ttl_);
    words_ = enter_words(keys_, value_, ttl_, texts);
}

void Acquire::ask(std::size_t node) {
    Line::Request r;
    if (fabric_->set->options.fencing)
        r = timed(Scripts::all().enter, words_, deadline_);
    else
        r.words = words_;
    r.done = [self = self<Acquire>(), node, p = proposal_](const Reply* reply,
                                                           const error_code& why, bool sent) {
        self->answered(node, p, reply, why, sent);
    };
    // Won without it: it is welcome as long as the lease is not given back.
    r.wanted = [self = self<Acquire>()] {
        const Place* p = find_place(self->place_);
        return !self->finished() || (self->won_ && p->value == self->value_ && !p->leaving);
    };
    tally_.set(node, {.kind = Vote::Kind::waiting});
    sent_[node] = true;
    fabric_->lines[node]->ask(std::move(r), fabric_->patient());
}

void Acquire::answered(std::size_t node, unsigned proposal, const Reply* reply,
                       const error_code& why, bool sent) {
    const bool plain = !fabric_->set->options.fencing;
    if (finished_) {
        // Won meanwhile: what may still arrive there is undone with the release. Lost: it is owed.
        Place* p = find_place(place_);
        if (p != nullptr && p->value == value_ && (reply != nullptr || !sent))
            Place::arrived(p->loose, node);
        return;
    }
    if (proposal != proposal_) return;
    if (reply == nullptr) {
        sent_[node] = sent;
        tally_.set(node, {.kind = Vote::Kind::missing, .why = why});
    } else {
        Vote v = vote_from(*reply, plain);
        if (v.kind == Vote::Kind::busy || v.kind == Vote::Kind::late) sent_[node] = false;
        // After its connection or the node's start changed, this answer may be from one that may
        // not vote.
        if (!fabric_->set->nodes[node]->votes(boot_clock::now())) v = {.kind = Vote::Kind::missing};
        tally_.set(node, std::move(v));
    }
    if (!starting_) judge();
}

void Acquire::judge() {
    if (finished_) return;
    const auto verdict = tally_.verdict();
    switch (verdict) {
        case Tally::Verdict::open:
            return;
        case Tally::Verdict::granted:
            return win();
        case Tally::Verdict::raise:
            if (boot_clock::now() < deadline_) return raise();
            return lost(Tally::Verdict::no_quorum);
        case Tally::Verdict::contended:
        case Tally::Verdict::no_quorum:
            return lost(verdict);
    }
}

void Acquire::raise() {
    NodeSet& set = *fabric_->set;
    ++proposal_;
    propose(std::max(tally_.next_token(), token_ + 1), boot_clock::now());
    starting_ = true;
    // Also those that have not answered: what they say to the old proposal counts no more.
    for (std::size_t i = 0; i < set.size(); ++i)
        if (tally_.at(i).holds() || tally_.at(i).kind == Vote::Kind::waiting) ask(i);
    starting_ = false;
    judge();
}

void Acquire::win() {
    NodeSet& set = *fabric_->set;
    std::string detail;
    const error_code wrong = set.refused(&detail);
    const bool in_time = boot_clock::now() < attempt_->sent + ttl_ - spi::drift(ttl_);
    if (wrong || !in_time) return lost(Tally::Verdict::no_quorum);
    Place& place = place_of(attempt_->place);
    for (std::size_t i = 0; i < set.size(); ++i)
        if (sent_[i] &&
            (tally_.at(i).kind == Vote::Kind::missing || tally_.at(i).kind == Vote::Kind::waiting))
            Place::may_arrive(place, place.loose, i, deadline_);
    Attempt::Granted g;
    g.token.value = token_;
    g.previous = PreviousHolder::unknown;
    g.ttl = ttl_;
    g.base = attempt_->sent;
    attempt_->outcome = g;
    set.saw(token_);
    won_ = true;
    finish();
}

void Acquire::lost(Tally::Verdict verdict) {
    const NodeSet& set = *fabric_->set;
    const auto now = boot_clock::now();
    Attempt& a = *attempt_;
    std::string detail;
    const error_code wrong = set.refused(&detail);
    if (wrong) {
        a.outcome = Attempt::Failed{wrong};
        a.detail = detail;
    } else if (verdict == Tally::Verdict::contended) {
        auto look = std::min(ttl_ / 3, milliseconds(1000));
        const auto left = tally_.busy_for();
        if (left >= milliseconds(0)) look = std::min(look, left + milliseconds(2));
        a.outcome = Attempt::Busy{std::max(look, milliseconds(1)), true};
    } else {
        const bool slow = tally_.verdict() == Tally::Verdict::granted;
        a.outcome = Attempt::Failed{slow ? make(Error::too_slow) : tally_.why(), set.answers()};
        a.detail = tally_.words(set, now);
    }
    place_of(a.place).value.clear();
    for (std::size_t i = 0; i < set.size(); ++i) {
        const Vote& v = tally_.at(i);
        if (!sent_[i]) continue;
        const bool unknown = v.kind == Vote::Kind::waiting || v.kind == Vote::Kind::missing;
        fabric_->owe(i, keys_.lock, value_, unknown ? deadline_ : boot_clock::time_point::min(),
                     ttl_);
    }
    finish();
}

// --- renew
// --------------------------------------------------------------------------------------

Renew::Renew(std::shared_ptr<const Fabric> f, Held& h, std::function<void()> done)
    : Round(std::move(f), h.deadline, std::move(done)), held_(&h), place_(h.place), ttl_(h.ttl) {
    keys_.assign(fabric_->set->options.prefix, h.name);
    if (const Place* p = find_place(place_)) value_ = p->value;
    texts_.assign(h.token.value, some_time_ms(*fabric_->set, h.sent), ttl_);
}

void Renew::start() {
    const NodeSet& set = *fabric_->set;
    held_->renewal = Held::Renewal::unknown;
    held_->renewal_error = make(Error::no_quorum);
    said_.assign(set.size(), Say::waiting);
    arm([this] { finish(); });
    const bool patient = fabric_->patient();
    const auto words = Line::words(keys_.lock, keys_.state, value_, std::to_string(ttl_.count()),
                                   "0", texts_.till);
    for (std::size_t i = 0; i < set.size(); ++i) {
        if (!set.nodes[i]->votes(boot_clock::now())) {
            said_[i] = Say::missing;
            continue;
        }
        Line::Request r = timed(Scripts::all().renew, words, deadline_);
        r.done = [self = self<Renew>(), i](const Reply* reply, const error_code& why, bool) {
            self->answered(i, reply, why);
        };
        fabric_->lines[i]->ask(std::move(r), patient);
    }
    starting_ = false;
    judge();
}

void Renew::answered(std::size_t node, const Reply* reply, const error_code&) {
    Say say = Say::missing;
    if (reply != nullptr && reply->is_text() && !reply->text.empty() &&
        fabric_->set->nodes[node]->votes(boot_clock::now())) {
        const char letter = reply->text.front();
        say = letter == 'y'   ? Say::renewed
              : letter == 'x' ? Say::revoked
              : letter == 'e' ? Say::empty
              : letter == 'n' ? Say::gone
                              : Say::missing;
    }
    said_[node] = say;
    if (finished_) {
        if (renewed_ && say == Say::empty) repair(node);
        return;
    }
    if (!starting_) judge();
}

void Renew::judge() {
    if (finished_) return;
    const std::size_t n = said_.size(), quorum = fabric_->set->quorum();
    const auto count = [&](Say s) {
        return static_cast<std::size_t>(std::count(said_.begin(), said_.end(), s));
    };
    const std::size_t renewed = count(Say::renewed), revoked = count(Say::revoked);
    const std::size_t over = count(Say::empty) + count(Say::gone) + revoked;
    if (renewed >= quorum) {
        renewed_ = true;
        held_->renewal = Held::Renewal::renewed;
        held_->renewal_error = {};
        finish();
        for (std::size_t i = 0; i < n; ++i)
            if (said_[i] == Say::empty) repair(i);
        return;
    }
    if (over > n - quorum) {
        held_->renewal = Held::Renewal::lost;
        held_->renewal_error = make_error_code(revoked > 0 ? errc::revoked : errc::lost);
        finish();
        if (over - revoked >= quorum) give_up();
        return;
    }
    if (count(Say::waiting) == 0) finish();
}

// Only after a majority has renewed, and never counted in that renewal: a lock that was broken, or
// whose time is over, must not come back.
void Renew::repair(std::size_t node) {
    if (boot_clock::now() >= deadline_) return;
    if (Place* p = find_place(place_)) Place::may_arrive(*p, p->repairs, node, deadline_);
    fabric_->extend(node, keys_, value_, ttl_, texts_, deadline_, place_);
}

// A majority is without it, so what the others have protects nothing and only stands in the way of
// who comes next.
void Renew::give_up() {
    Place* const p = find_place(place_);
    if (p == nullptr) return;
    p->leaving = true;
    for (std::size_t i = 0; i < said_.size(); ++i) {
        const auto again = p->under_way(i);
        const bool gone = said_[i] == Say::empty || said_[i] == Say::gone;
        if (!gone || again > boot_clock::now()) fabric_->owe(i, keys_.lock, value_, again, ttl_);
    }
}

// --- release
// ------------------------------------------------------------------------------------

Release::Release(std::shared_ptr<const Fabric> f, std::string_view name,
                 std::shared_ptr<void> place, milliseconds ttl, boot_clock::time_point deadline,
                 std::function<void()> done)
    : Round(std::move(f), deadline, std::move(done)), place_(std::move(place)), ttl_(ttl) {
    keys_.assign(fabric_->set->options.prefix, name);
    if (Place* p = find_place(place_)) {
        value_ = p->value;
        p->leaving = true;
    }
}

void Release::start() {
    const std::size_t n = fabric_->set->size();
    settled_.assign(n, false);
    open_ = n;
    arm([this] { finish(); });
    const bool patient = fabric_->patient();
    const auto words = Line::words(keys_.lock, value_);
    for (std::size_t i = 0; i < n; ++i) {
        Line::Request r;
        r.verb = &Scripts::all().release;
        r.words = words;
        r.done = [self = self<Release>(), i](const Reply* reply, const error_code&, bool) {
            self->answered(i, reply);
        };
        fabric_->lines[i]->ask(std::move(r), patient);
    }
    starting_ = false;
    judge();
}

void Release::owe(std::size_t node) {
    const Place* p = find_place(place_);
    fabric_->owe(node, keys_.lock, value_,
                 p == nullptr ? boot_clock::time_point::min() : p->under_way(node), ttl_);
}

void Release::answered(std::size_t node, const Reply* reply) {
    --open_;
    settled_[node] = true;
    const bool told = reply != nullptr && reply->is(Reply::Type::integer);
    if (told) tally_.add(*reply);
    const Place* p = find_place(place_);
    const bool again = p != nullptr && p->under_way(node) > boot_clock::now();
    if (!told || again) owe(node);
    if (!starting_ && !finished_) judge();
}

void Release::judge() {
    if (open_ == 0 || tally_.ones >= fabric_->set->quorum()) finish();
}

}  // namespace holdfast::redlock
