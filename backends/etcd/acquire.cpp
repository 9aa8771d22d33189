// How an owner comes to a key, made free, beside others of its kind, or in line; and how a key in
// line becomes a holder's: what fits is taken, the others wait.
#include <algorithm>
#include <utility>

#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "operations.hpp"

namespace holdfast::etcd {

using spi::Attempt;
using State = OwnerState::State;

namespace {

/// How often what a watch says is checked.
milliseconds check_within(milliseconds ttl) noexcept {
    return std::max(milliseconds(5000), ttl / 2);
}

}  // namespace

Acquire::Acquire(Attempt& a, QueueCache& q) : Operation(a), attempt_(a), queues_(q) {
    if (place->state == State::asked)
        enter();
    else
        stand(a.sent);
}

bool Acquire::joins_waiters() const noexcept {
    return attempt_.queue && !place->units.permits() && queues_.crowded(place->line);
}

void Acquire::enter() noexcept {
    OwnerState& p = *place;
    // Behind others that wait it is not granted yet, so its key need not be moved to the waiters'
    // lease later. All requests that may have made the key are on leases of one kind, which a
    // tombstone outlasts.
    if (!p.perhaps) p.waits_at_once = joins_waiters();
    want(Step::enter, p.waits_at_once ? Needs::waiting : Needs::young, true);
}

void Acquire::leased(const Lease& l) {
    Operation::leased(l);
    if (leave_) leave_->leased(l);
    // It is attached to it already, or there is nothing to attach.
    if (wants() == Step::adopt && (place->lease == l.id || place->state != State::queued)) wait();
}

void Acquire::request(Transaction t) {
    switch (wants()) {
        case Step::enter:
            how_.queue = attempt_.queue;
            how_.behind = place->waits_at_once || joins_waiters();
            how_.list =
                !how_.behind && (attempt_.queue || place->perhaps) && !queues_.known(place->line);
            how_.lease = lease().id;
            place->value =
                place->waits_at_once ? place->waiting_value() : place->value_with(place->units);
            lists_ = how_.list || place->units.permits();
            if (how_.list) listing_ = std::make_unique<QueueCache::Listing>(queues_, place->line);
            return entering(*place, how_, t);
        case Step::clear:
            return clearing(*place, marker_, t);
        case Step::check:
            t.if_created(ahead_, created_);
            t.if_created(place->key, place->created);
            return;
        case Step::adopt:
        case Step::take:
            if (!change_) {
                using enum Change::What;
                const bool takes = wants() == Step::take;
                change_.emplace(*place, lease(), takes ? attempt_.units : place->units,
                                takes ? take : adopt);
            }
            return change_->request(t);
        default:
            return leave_->request(t);
    }
}

void Acquire::answered(const Result& r, const RequestInfo& went) {
    switch (wants()) {
        case Step::enter:
            return entered(r, went);
        case Step::clear:
            if (place->units.permits() || is_clear(r, marker_)) return enter();
            return want(Step::over);
        case Step::check:
            if (r.succeeded || place->state != State::queued || queues_.fits(*place))
                return settle();
            queues_.resume();
            return list();
        case Step::list:
            return listed(r, went.revision);
        case Step::adopt:
        case Step::take:
            return changed(change_->answered(r, went.revision));
        default:
            leave_->answered(r, went);
            return left();
    }
}

void Acquire::missing(const error_code& why, const RequestInfo& went) {
    switch (wants()) {
        case Step::enter:
            return not_entered(why, went);
        case Step::clear:
            attempt_.detail = went.detail;
            return end(Attempt::Failed{why});
        case Step::check:
        case Step::list:
            listing_.reset();
            return settle();
        case Step::adopt:
            return wait();
        case Step::take:  // its key is there, and fits
            attempt_.detail = went.detail;
            return end(Attempt::NoAnswer{why});
        default:
            leave_->missing(why, went);
            return left();
    }
}

void Acquire::entered(const Result& r, const RequestInfo& went) {
    OwnerState& p = *place;
    p.perhaps = p.perhaps || went.doubt;
    p.doubt = p.doubt || went.late;
    const auto listing = std::move(listing_);
    const Entered e = read_entering(p, how_, r);
    using enum Entered::Outcome;
    switch (e.outcome) {
        case granted:
        case made:
            p.created = p.modified = went.revision;
            p.lease = lease().id;
            // The answer has the line as it was when the key was made, and the lease is its own.
            if (e.outcome == made && !(p.units.permits() && UnitQueue(*e.line).fits(went.revision)))
                break;
            p.lease_certain = true;
            return grant(e.previous);
        case stands:
            p.created = e.found.created;
            p.modified = e.found.modified;
            p.lease = e.found.lease;
            break;
        case busy:
            return end(Attempt::Busy{Attempt::Busy::unnotified(attempt_.ttl), true});
        case Entered::Outcome::left:
            return end(Attempt::Failed{make_error_code(errc::cancelled)});
        case foreign:
            return end(Attempt::Failed{make(Error::other_kind)});
        case other_kind:
        case marked:
            end(Attempt::Failed{make_error_code(errc::kind_mismatch)});
            if (e.outcome == other_kind || std::exchange(cleared_, true)) return;
            marker_ = e.found.created;
            return want(Step::clear, Needs::nothing, true);
        case unreadable:
            p.perhaps = p.doubt = true;
            queues_.may_enter(place);
            return end(Attempt::NoAnswer{make(Error::protocol)});
    }
    p.state = State::queued;
    p.checked = went.ended;
    queues_.join(place);
    if (listing) listing->done(*e.line, went.revision);
    if (e.outcome == made && !attempt_.queue) return leave();
    stand(went.ended);
}

void Acquire::not_entered(const error_code& why, const RequestInfo& went) {
    listing_.reset();
    place->perhaps = place->perhaps || went.doubt;
    place->doubt = place->doubt || went.late;
    if (place->perhaps) queues_.may_enter(place);
    attempt_.detail = went.detail;
    if (place->perhaps)
        end(Attempt::NoAnswer{why});
    else
        end(Attempt::Failed{why, why == make(Error::overloaded) || went.unsent});
    // The one request that raises the alarm may have been executed. Deletions are still accepted.
    full_ = went.doubt && why == make(Error::no_space);
    if (full_) leave();
}

// --- in line

void Acquire::stand(boot_clock::time_point now) {
    OwnerState& p = *place;
    const auto trusted = queues_.following() ? check_within(attempt_.ttl)
                                             : Attempt::Busy::unnotified(attempt_.ttl) / 2;
    const bool due = now >= p.checked + trusted || !queues_.known(p.line);
    if (p.state != State::queued || !due || queues_.fits(p) || !queues_.foremost(p))
        return settle();
    p.checked = now;
    const std::string* key = queues_.ahead(p, &created_);
    watched_ = queues_.known(p.line);
    // A mutex waits for the key ahead alone. Where others may share, each one that leaves may let
    // it in.
    if (key == nullptr || !p.units.exclusive()) return list();
    watched_ = false;
    ahead_ = *key;
    want(Step::check);
}

void Acquire::list() {
    listing_ = std::make_unique<QueueCache::Listing>(queues_, place->line);
    want(Step::list);
}

void Acquire::listed(const Result& r, std::int64_t revision) {
    const bool told = queues_.fits(*place) || place->state != State::queued;
    listing_->done(r.found, revision);
    listing_.reset();
    if (watched_ && !told && queues_.fits(*place)) queues_.resume();
    settle();
}

void Acquire::settle() {
    if (place->state == State::gone) {
        start_over();
        attempt_.detail = "the lease of the key has ended";
        return end(Attempt::Failed{make_error_code(errc::unavailable)});
    }
    // Core refuses a grant that was answered too late, and asks again.
    if (place->state == State::held || queues_.fits(*place)) return want(Step::take, Needs::young);
    if (!attempt_.queue) return leave();
    want(Step::adopt, Needs::waiting);
}

void Acquire::changed(Change::Outcome how) {
    using enum Change::Outcome;
    if (how == again) return;
    if (wants() == Step::adopt) {
        if (how == gone) place->state = State::gone;
        return wait();
    }
    switch (how) {
        case again:
        case done:
            return grant(change_->previous());
        case gone:
            start_over();
            return end(Attempt::Failed{make_error_code(errc::unavailable)});
        case revoked:
            return end(Attempt::Failed{make_error_code(errc::revoked)});
        case other_kind:
            return end(Attempt::Failed{make(Error::other_kind)});
        case refused:
            return end(Attempt::NoAnswer{make(Error::refused)});
    }
}

void Acquire::wait() {
    // What has come meanwhile has not woken an attempt that was under way.
    const bool again = place->state == State::gone || queues_.fits(*place);
    end(Attempt::Busy{again ? milliseconds(1) : Attempt::Busy::unnotified(attempt_.ttl)});
}

// --- outcomes

void Acquire::grant(PreviousHolder previous) {
    OwnerState& p = *place;
    p.state = State::held;
    queues_.hold(p);
    Attempt::Granted g;
    if (!p.units.permits()) g.token.value = static_cast<std::uint64_t>(p.created);
    g.ttl = lease().believed(attempt_.ttl, attempt_.lock_delay);
    g.base = lease().base;
    g.previous = previous;
    p.valid_until = spi::valid_until(g.base, g.ttl);
    end(g);
}

void Acquire::leave() {
    leave_.emplace(attempt_, queues_);
    want(leave_->wants(), leave_->needs());
}

void Acquire::left() {
    if (!attempt_.withdrawal && full_) return end(Attempt::Failed{make(Error::no_space)});
    if (!attempt_.withdrawal)
        return end(Attempt::Busy{Attempt::Busy::unnotified(attempt_.ttl), true});
    if (!full_) attempt_.outcome = Attempt::NoAnswer{attempt_.withdrawal};
    want(Step::over);
}

void Acquire::start_over() {
    OwnerState& p = *place;
    queues_.leave(p);
    p.state = State::asked;
    if (p.doubt) queues_.may_enter(place);
    p.created = p.modified = p.lease = 0;
}

void Acquire::end(Verdict v) {
    attempt_.outcome = std::move(v);
    want(Step::over);
}

}  // namespace holdfast::etcd
