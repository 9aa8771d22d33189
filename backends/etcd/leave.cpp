// How an owner's key goes: withdrawn when it waits no longer, or released.
#include "marks.hpp"
#include "operations.hpp"

namespace holdfast::etcd {

using spi::Attempt;
using spi::Held;

namespace {

/// A late request that would make the key finds the tombstone, for as long as the lease that it
/// would use, or longer.
void add_tombstone(const OwnerState& p, const Lease& lease, Transaction& t) {
    if (p.doubt) t.success.push_back(put(p.tombstone, "", lease.id));
}

Operation::Needs tombstone_needs(const OwnerState& p) {
    return p.doubt ? Operation::Needs::young : Operation::Needs::nothing;
}

}  // namespace

Withdraw::Withdraw(QueueCache& q, Attempt& a)
    : Operation(state_of(a.place), a.ttl + a.lock_delay, a.deadline), queues_(q), attempt_(a) {
    a.withdrawal = {};
    if (place && (place->created != 0 || place->perhaps))
        want(Step::leave, tombstone_needs(*place));
}

Transaction Withdraw::request() {
    Transaction t;
    t.success = {deletion(place->key)};
    add_withdrawal(*place, t);
    add_tombstone(*place, lease(), t);
    if (place->state == OwnerState::State::queued) place->state = OwnerState::State::gone;
    return t;
}

void Withdraw::answered(const Result&, const RequestInfo&) {
    place->state = OwnerState::State::gone;
    queues_.leave(*place);
    attempt_.place.reset();
    want(Step::over);
}

void Withdraw::missing(const error_code& why, const RequestInfo&) {
    attempt_.withdrawal = why;
    want(Step::over);
}

Release::Release(QueueCache& q, Held& h)
    : Operation(state_of(h.place), h.ttl + h.lock_delay, h.deadline), queues_(q), held_(h) {
    h.released = ReleaseResult::unreachable;
    // No transaction may write the same marks twice.
    want(Step::leave, tombstone_needs(*place), place->writes_marks());
}

Transaction Release::request() {
    Transaction t;
    t.compare = {was_created(place->key, place->created)};
    t.success = {deletion(place->key, true)};
    // Whoever lost it has not finished, and is one that crashed to the next holder.
    if (!is_late()) add_release(*place, held_.outcome, t);
    add_tombstone(*place, lease(), t);
    place->state = OwnerState::State::gone;  // what the watch says of it is no news
    return t;
}

void Release::answered(const Result& r, const RequestInfo& went) {
    want(Step::over);
    queues_.leave(*place);
    if (!r.succeeded) {
        // Of two that were sent the first may have done it: core's next one tells.
        if (!went.repeated) held_.released = ReleaseResult::already_expired;
        return;
    }
    const bool ours = !r.results.empty() && !r.results.front().found.empty() &&
                      place->learn(r.results.front().found.front().value);
    held_.released = !ours       ? ReleaseResult::owned_by_other
                     : is_late() ? ReleaseResult::already_expired
                                 : ReleaseResult::released;
}

void Release::missing(const error_code& why, const RequestInfo& went) {
    held_.release_error = why;
    held_.detail = went.detail;
    want(Step::over);
}

bool Release::is_late() const {
    return held_.lock_delay > milliseconds::zero() && held_.sent >= place->valid_until;
}

}  // namespace holdfast::etcd
