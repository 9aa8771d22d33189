#include "rounds.hpp"

#include <algorithm>

#include "../resp/errors.hpp"
#include "errors.hpp"
#include "holdfast/spi/drift.hpp"

namespace holdfast::redlock {

using resp::PollMark;
using spi::Attempt;
using spi::Held;

milliseconds closed_for(const std::shared_ptr<void>& place, boot_clock::time_point now) {
    const OwnerState* const p = find_state(place);
    if (p == nullptr || p->closed_until <= now) return milliseconds(0);
    return std::chrono::ceil<milliseconds>(p->closed_until - now);
}

milliseconds kept_now(const Held& h) {
    return kept_for(h.ttl, h.lock_delay, closed_for(h.place, boot_clock::now()));
}

milliseconds kept_for(milliseconds ttl, milliseconds lock_delay, milliseconds closed) noexcept {
    return std::max(ttl + lock_delay, closed);
}

Round::Round(const RoundContext& s, std::string_view name, std::shared_ptr<void> place, bool shared,
             milliseconds ttl, boot_clock::time_point until)
    : deadline(until), context_(s), place_(std::move(place)), shared_(shared), ttl_(ttl) {
    keys_.assign(s.prefix, name);
    peers_.resize(s.voters.size());
}

unsigned Round::asked(std::size_t node) noexcept {
    peers_[node].wanted = false;
    ++peers_[node].open;
    return number_;
}

void Round::answered(std::size_t node, unsigned number, const Reply& r, boot_clock::time_point now,
                     bool in_order) {
    --peers_[node].open;
    said(node, number == number_, r, now, in_order);
}

void Round::missing(std::size_t node, unsigned number, const spi::Failure& why, bool sent) {
    if (!sent) --peers_[node].open;
    silent(node, number == number_, why);
}

void Round::owe(std::size_t node, boot_clock::time_point again) {
    owe(node, undo_ask(keys_, value(), context_.fencing, shared_), again);
}

void Round::owe(std::size_t node, const Ask& release, boot_clock::time_point again) {
    context_.after.owe(node, release, again, ttl_);
}

void Round::acquire_late(std::size_t node, std::string token) {
    OwnerState* const p = find_state(place_);
    OwnerState::may_arrive(*p, p->repairs, node, deadline);
    if (!with_units())
        return context_.after.acquire_late(
            node, enter_ask(keys_, value(), ttl_, std::move(token), deadline), place_);
    // A majority has it: nobody's mark is before it.
    const WaiterTicket as{shared_, mark_text(0, shared_, value()), milliseconds(0)};
    context_.after.acquire_late(
        node, enter_units_ask(keys_, value(), ttl_, std::move(token), as, deadline), place_);
}

// --- acquire
// ------------------------------------------------------------------------------------

AcquireRound::AcquireRound(const RoundContext& s, Attempt& a)
    : Round(s, a.name, (state_of(a.place), a.place), !a.units.exclusive(), kept_for(a), a.deadline),
      attempt_(&a) {
    tally_.begin(peers_.size());
}

void AcquireRound::begin(boot_clock::time_point now) {
    OwnerState& place = *find_state(place_);
    // Something of an earlier round that was not undone (its grant came too late to be believed).
    if (!place.value.empty())
        for (std::size_t i = 0; i < peers_.size(); ++i)
            owe(i, undo_ask(keys_, place.value, context_.fencing, shared_), place.under_way(i));
    place.begin(attempt_->owner);
    if (place.rounds == 1) place.since = now;
    if (place.ticket == 0 && context_.fencing) place.ticket = context_.voters.propose(now);
    place.told = 0;
    // Nobody tells a mutex without a mark.
    if (context_.told && attempt_->queue && attempt_->repeated) place.units = true;
    begun_ = now;
    waited_ = std::chrono::floor<milliseconds>(now - place.since);
    propose(context_.fencing ? context_.voters.propose(now) : 0);
    const bool wrong = static_cast<bool>(context_.voters.refused());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        peers_[i].wanted = !wrong && context_.voters.votes(i, now);
        if (!peers_[i].wanted) tally_.set(i, {.kind = Vote::Kind::missing});
    }
}

void AcquireRound::propose(std::uint64_t token) {
    token_ = token;
    OwnerState& place = *find_state(place_);
    const std::string& value = place.value;
    std::string proposal = token == 0 ? no_proposal : token_text(token);
    if (!context_.fencing) {
        request_ = plain_ask(keys_, value, ttl_);
    } else if (!with_units()) {
        request_ = enter_ask(keys_, value, ttl_, std::move(proposal), deadline);
    } else {
        const std::uint64_t ticket = place.ticket == 0 ? last_ticket : place.ticket;
        const WaiterTicket as{shared_,
                              mark_text(ticket, shared_, attempt_->owner, context_.channel),
                              marks() ? mark_lasts() : milliseconds(0)};
        if (marks()) place.marked = as.mark;
        request_ = enter_units_ask(keys_, value, ttl_, std::move(proposal), as, deadline);
    }
}

// An earlier waiter is let in earlier: a mark says so at each node.
bool AcquireRound::marks() const noexcept {
    return attempt_->queue && (context_.told || waited_ >= PollMark::after) &&
           find_state(place_)->ticket != 0 && with_units();
}

milliseconds AcquireRound::mark_lasts() const noexcept {
    const milliseconds longer = context_.told ? pause() - PollMark::pause : milliseconds(0);
    return find_state(place_)->mark.lasts() + std::max(3 * longer, milliseconds(0));
}

milliseconds AcquireRound::pause() const noexcept {
    return Attempt::Busy::unnotified(attempt_->ttl);
}

// Once it has a mark, and the nodes tell it, it need not ask. But what it had at some nodes has
// taken its marks there with it, and the first in line may be gone without a word.
milliseconds AcquireRound::next_look(boot_clock::time_point now) const {
    const milliseconds random(now.time_since_epoch().count() / 1000 % 50);
    const auto soon = PollMark::pause / 2 + random;
    auto look = pause();
    if (!marks() && context_.told && attempt_->queue && find_state(place_)->ticket != 0)
        return milliseconds(1);  // to leave it
    const bool some = tally_.count(Vote::Kind::granted) + tally_.count(Vote::Kind::low) > 0;
    if (marks() && context_.told && some)
        look = milliseconds(5) + random / 5;
    else if (marks() && !context_.told)
        look = soon;
    else if (marks() && tally_.free_for_others())
        look = std::min(look, soon + random);
    const auto left = tally_.busy_for();
    if (left >= milliseconds(0)) look = std::min(look, left + milliseconds(2));
    return std::max(look, milliseconds(1));
}

void AcquireRound::said(std::size_t node, bool current, const Reply& r, boot_clock::time_point now,
                        bool) {
    Vote v = vote_from(r, !context_.fencing);
    using enum Vote::Kind;
    Peer& peer = peers_[node];
    // Nothing of this round was there before, unless it came by another address.
    const bool twice = v.again && !peer.taken && peer.open == 0;
    if (v.kind != busy && v.kind != late && v.kind != units) peer.taken = true;
    if (twice)
        v = {.kind = refused,
             .why = make(Error::same_server),
             .words = "it is the same server as another of the nodes"};
    if (finished_) return silent(node, current, {});
    if (!current) return;
    // After its connection or the node's start changed, this answer may be from one that may not
    // vote.
    if (!context_.voters.votes(node, now)) v = {.kind = Vote::Kind::missing};
    tally_.set(node, std::move(v));
}

void AcquireRound::silent(std::size_t node, bool current, const spi::Failure& why) {
    if (finished_) {
        // Won meanwhile: what may still arrive there is undone with the release. Lost: it is owed.
        OwnerState* const p = find_state(place_);
        if (won_ && p->value == value() && peers_[node].open == 0)
            OwnerState::arrived(p->loose, node);
        if (!won_ && peers_[node].open == 0) context_.after.arrived(node, value());
    } else if (current) {
        tally_.set(node, {.kind = Vote::Kind::missing, .why = why.why, .words = why.detail});
    }
}

Round::Phase AcquireRound::phase(boot_clock::time_point now) {
    const auto verdict = tally_.verdict();
    if (verdict != Tally::Verdict::granted && tally_.count(Vote::Kind::units) > 0 &&
        now < deadline) {
        find_state(place_)->units = true;
        propose(token_);
        // A mark at some nodes only keeps others from a majority, and no majority tells its waiter.
        ask_again(marks());
        return Phase::open;
    }
    if (verdict == Tally::Verdict::open) return Phase::open;
    // Lost: what the others took has to be given back, so better hear from them.
    if (verdict == Tally::Verdict::contended || verdict == Tally::Verdict::no_quorum)
        return Phase::decided;
    if (verdict == Tally::Verdict::granted || now >= deadline) return Phase::closed;
    propose(std::max({tally_.next_token(), token_ + 1, context_.voters.propose(now)}));
    ask_again(false);
    return Phase::open;
}

// Also those that have not answered: what they say to the old request is no vote any more.
void AcquireRound::ask_again(bool busy_too) {
    ++number_;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        const Vote& v = tally_.at(i);
        const bool busy = busy_too && v.kind == Vote::Kind::busy;
        if (!busy && !v.holds() && v.kind != Vote::Kind::waiting && v.kind != Vote::Kind::units)
            continue;
        tally_.set(i, {.kind = Vote::Kind::waiting});
        peers_[i].wanted = true;
    }
}

void AcquireRound::finish(boot_clock::time_point now) {
    auto verdict = tally_.verdict();
    if (verdict == Tally::Verdict::open) {
        for (std::size_t i = 0; i < peers_.size(); ++i)
            if (tally_.at(i).kind == Vote::Kind::waiting)
                tally_.set(
                    i, {.kind = Vote::Kind::missing, .why = resp::make(resp::Error::no_answer)});
        verdict = tally_.verdict();
    }
    finished_ = true;
    OwnerState& place = *find_state(place_);
    place.mark.answered(now - begun_);
    const spi::Failure wrong = context_.voters.refused();
    const bool in_time = now < attempt_->sent + attempt_->ttl - spi::drift(attempt_->ttl);
    if (verdict == Tally::Verdict::granted && !wrong && in_time) return win(now);
    lose(verdict == Tally::Verdict::contended, wrong, now);
}

void AcquireRound::win(boot_clock::time_point now) {
    won_ = true;
    OwnerState& place = *find_state(place_);
    const milliseconds least = attempt_->min_hold;
    if (least > milliseconds(0)) place.closed_until = now + least + spi::drift(least);
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (peers_[i].open > 0) OwnerState::may_arrive(place, place.loose, i, deadline);
        // Its connection was still on its way: the engine takes the lock there, too.
        if (peers_[i].wanted) acquire_late(i, token_text(token_));
    }
    Attempt::Granted g;
    g.token.value = token_;
    g.previous = PreviousHolder::unknown;
    g.ttl = attempt_->ttl;
    g.base = attempt_->sent;
    attempt_->outcome = g;
    context_.voters.saw(token_);
}

void AcquireRound::lose(bool contended, const spi::Failure& wrong, boot_clock::time_point now) {
    Attempt& a = *attempt_;
    if (wrong) {
        a.outcome = Attempt::Failed{wrong.why};
        a.detail = wrong.detail;
    } else if (contended) {
        const bool told = context_.told && a.queue && find_state(place_)->ticket != 0;
        a.outcome = Attempt::Busy{next_look(now), !marks() && !told};
    } else {
        const bool slow = tally_.verdict() == Tally::Verdict::granted;
        a.outcome =
            Attempt::Failed{slow ? make(Error::too_slow) : tally_.why(), context_.voters.answers()};
        a.detail = tally_.words(context_.voters, now);
    }
    find_state(place_)->value.clear();
    for (std::size_t i = 0; i < peers_.size(); ++i)
        if (peers_[i].taken || peers_[i].open > 0)
            owe(i, peers_[i].open > 0 ? deadline : boot_clock::time_point::min());
}

bool AcquireRound::useful(std::size_t node, boot_clock::time_point now) const noexcept {
    // What connects may have found out that the node has restarted.
    if (!context_.voters.votes(node, now)) return false;
    // Won without it: it is welcome as long as the lease is not given back.
    const OwnerState* const p = find_state(place_);
    return !finished_ || (won_ && p->value == value() && !p->leaving);
}

// --- renew
// --------------------------------------------------------------------------------------

RenewRound::RenewRound(const RoundContext& s, Held& h)
    : Round(s, h.name, h.place, !h.units.exclusive(), kept_now(h), h.deadline),
      held_(&h),
      token_(token_text(h.token.value)) {
    said_.resize(peers_.size(), Say::waiting);
    votes_.begin(peers_.size());
}

void RenewRound::begin(boot_clock::time_point now) {
    held_->renewal = Held::Renewal::unknown;
    held_->renewal_error = make(Error::no_quorum);
    const OwnerState* const p = find_state(place_);
    const std::string value = p == nullptr ? std::string() : p->value;
    request_ = shared_ ? renew_units_ask(keys_, value, ttl_, deadline)
                       : renew_ask(keys_, value, ttl_, token_, deadline);
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        peers_[i].wanted = context_.voters.votes(i, now);
        if (peers_[i].wanted) continue;
        said_[i] = Say::missing;
        votes_.set(i, {.kind = Vote::Kind::missing});
    }
}

void RenewRound::said(std::size_t node, bool, const Reply& r, boot_clock::time_point now, bool) {
    Say say = Say::missing;
    if (r.is_text() && !r.text.empty() && context_.voters.votes(node, now)) {
        const char letter = r.text.front();
        say = letter == 'y'   ? Say::renewed
              : letter == 'x' ? Say::revoked
              : letter == 'v' ? Say::broken
              : letter == 'e' ? Say::empty
              : letter == 'n' ? Say::gone
                              : Say::missing;
    }
    said_[node] = say;
    if (say == Say::missing)
        votes_.set(node,
                   r.is(Reply::Type::error) ? vote_from(r, false) : Vote{.kind = Vote::Kind::late});
    if (finished_ && renewed_ && say == Say::empty) repair(node, now);
}

void RenewRound::silent(std::size_t node, bool, const spi::Failure& why) {
    said_[node] = Say::missing;
    if (!finished_)
        votes_.set(node, {.kind = Vote::Kind::missing, .why = why.why, .words = why.detail});
}

std::size_t RenewRound::count(Say s) const noexcept {
    return static_cast<std::size_t>(std::count(said_.begin(), said_.end(), s));
}

std::size_t RenewRound::over() const noexcept {
    return count(Say::empty) + count(Say::gone) + count(Say::revoked) + count(Say::broken);
}

Round::Phase RenewRound::phase(boot_clock::time_point) {
    const std::size_t quorum = context_.voters.quorum();
    const bool decided = count(Say::renewed) >= quorum || over() > said_.size() - quorum;
    return decided || count(Say::waiting) == 0 ? Phase::closed : Phase::open;
}

void RenewRound::finish(boot_clock::time_point now) {
    finished_ = true;
    const std::size_t quorum = context_.voters.quorum(), revoked = count(Say::revoked);
    if (count(Say::renewed) >= quorum) {
        renewed_ = true;
        held_->renewal = Held::Renewal::renewed;
        held_->renewal_error = {};
        for (std::size_t i = 0; i < said_.size(); ++i)
            if (said_[i] == Say::empty) repair(i, now);
    } else if (over() > said_.size() - quorum) {
        held_->renewal = Held::Renewal::lost;
        const bool broken = revoked + count(Say::broken) > 0;
        held_->renewal_error = make_error_code(broken ? errc::revoked : errc::lost);
        if (over() - revoked >= quorum) give_up(now);
    } else {
        using enum Vote::Kind;
        for (std::size_t i = 0; i < said_.size(); ++i)
            if (said_[i] == Say::renewed)
                votes_.set(i, {.kind = granted});
            else if (said_[i] != Say::missing && said_[i] != Say::waiting)
                votes_.set(i, {.kind = busy});
        held_->renewal_error = votes_.why();
        held_->detail = votes_.words(context_.voters, now);
    }
}

// Only after a majority has renewed, and never counted in that renewal: a lock that was broken, or
// whose time is over, must not come back.
void RenewRound::repair(std::size_t node, boot_clock::time_point now) {
    if (now < deadline && place_) acquire_late(node, token_);
}

// A majority is without it, so what the others have protects nothing and only stands in the way of
// who comes next.
void RenewRound::give_up(boot_clock::time_point now) {
    OwnerState* const p = find_state(place_);
    // Being given back already, that may be why: its release has to find what is left.
    if (p == nullptr || p->leaving.exchange(true)) return;
    for (std::size_t i = 0; i < said_.size(); ++i) {
        const auto again = p->under_way(i);
        const bool gone =
            said_[i] == Say::empty || said_[i] == Say::gone || said_[i] == Say::broken;
        if (!gone || again > now) owe(i, again);
    }
}

}  // namespace holdfast::redlock
