// How an owner's key goes: withdrawn when it waits no longer, or released.
#include "marks.hpp"
#include "operations.hpp"

namespace holdfast::etcd {

Leave::Leave(spi::Attempt& a, QueueCache& q) : Operation(a), attempt_(&a), queues_(q) {
    a.withdrawal = {};
    if (place && (place->created != 0 || place->perhaps)) begin(false);
}

Leave::Leave(spi::Held& h, QueueCache& q) : Operation(h), held_(&h), queues_(q) {
    h.released = ReleaseResult::unreachable;
    begin(place->writes_marks());  // no transaction may write the same marks twice
}

void Leave::begin(bool alone) {
    // For the tombstone, if there is one.
    const Needs lease = place->waits_at_once ? Needs::waiting : Needs::young;
    want(Step::leave, place->doubt ? lease : Needs::nothing, alone);
}

void Leave::request(Transaction t) {
    OwnerState& p = *place;
    t.then().remove(p.key, held_ != nullptr);
    if (held_ == nullptr) {
        add_withdrawal(p, t);
    } else {
        t.if_created(p.key, p.created);
        // A holder that lost it has not finished: to the next holder it has crashed.
        if (!is_late()) add_release(p, held_->outcome, t);
    }
    // A late request that would make the key finds the tombstone, for as long as the lease that it
    // would use, or longer: the waiters' lease is that one, or one that was granted since.
    if (p.doubt) t.then().put(p.tombstone, "", lease().id);
    // What the watch says of it is no news.
    if (held_ != nullptr || p.state == OwnerState::State::queued) p.state = OwnerState::State::gone;
}

void Leave::answered(const Result& r, const RequestInfo& went) {
    want(Step::over);
    place->state = OwnerState::State::gone;
    queues_.leave(*place);
    if (attempt_ != nullptr) return attempt_->place.reset();
    if (!r.succeeded) {
        // Of two that were sent the first may have done it: core's next one tells.
        if (!went.repeated) held_->released = ReleaseResult::already_expired;
        return;
    }
    const bool ours = !r.results.empty() && !r.results.front().found.empty() &&
                      place->learn(r.results.front().found.front().value);
    held_->released = !ours       ? ReleaseResult::owned_by_other
                      : is_late() ? ReleaseResult::already_expired
                                  : ReleaseResult::released;
}

void Leave::missing(const error_code& why, const RequestInfo& went) {
    want(Step::over);
    (held_ != nullptr ? held_->release_error : attempt_->withdrawal) = why;
    if (held_ != nullptr) held_->detail = went.detail;
}

bool Leave::is_late() const {
    return held_->lock_delay > milliseconds::zero() && held_->sent >= place->valid_until;
}

}  // namespace holdfast::etcd
