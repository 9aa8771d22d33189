// How an owner's key goes: withdrawn by who waits no longer, or released.
#include <algorithm>

#include "backend.hpp"
#include "marks.hpp"

namespace holdfast::etcd {

using spi::Attempt;
using spi::Held;

/// A late request that would make the key finds the tombstone, for as long as the lease that it
/// would use, or longer.
void EtcdBackend::add_tombstone(const OwnerState& p, const Lease& lease, Transaction& t) {
    if (p.doubt) t.success.push_back(put(tombstone_of(shared_->options, p.owner), "", lease.id));
}

awaitable<void> EtcdBackend::withdraw(std::span<Attempt* const> items) {
    Attempts there;
    for (Attempt* a : items) {
        const OwnerStatePtr p = state_of(a->place);
        a->withdrawal = {};
        if (p && (p->created != 0 || p->perhaps)) there.push_back(a);
    }
    auto leasing = lease_each(there, in_doubt);
    const std::vector<Leased> leased = co_await std::move(leasing);
    Attempts all;
    std::vector<Transaction> requests;
    std::vector<const OwnerState*> places;
    auto deadline = boot_clock::time_point::min();
    for (std::size_t i = 0; i < there.size(); ++i) {
        Attempt* a = there[i];
        if (!leased[i].lease) {
            a->withdrawal = leased[i].lease.error();
            continue;
        }
        const OwnerStatePtr p = state_of(a->place);
        Transaction t;
        t.success = {deletion(p->key)};
        add_withdrawal(*p, t);
        add_tombstone(*p, *leased[i].lease, t);
        if (p->state == OwnerState::State::queued) p->state = OwnerState::State::gone;
        requests.push_back(std::move(t));
        places.push_back(p.get());
        all.push_back(a);
        deadline = std::max(deadline, a->deadline);
    }
    if (all.empty()) co_return;
    add_leaving(places, requests);
    RequestInfo went;
    auto task = transact(std::move(requests), deadline, went);
    const auto results = co_await std::move(task);
    for (Attempt* a : all) {
        const OwnerStatePtr p = state_of(a->place);
        a->withdrawal = results ? error_code() : results.error();
        if (!results) continue;
        p->state = OwnerState::State::gone;
        queues_->leave(*p);
        a->place.reset();
    }
}

awaitable<void> EtcdBackend::release(std::span<Held* const> items) {
    // No transaction may write the same marks twice.
    std::vector<Held*> rest(items.begin(), items.end());
    while (!rest.empty()) {
        std::vector<Held*> part = take_apart(rest, [](const Held* a, const Held* b) {
            const OwnerStatePtr p = state_of(a->place);
            return p->writes_marks() && p->marks == state_of(b->place)->marks;
        });
        auto task = release_apart(std::move(part));
        co_await std::move(task);
    }
}

awaitable<void> EtcdBackend::release_apart(std::vector<Held*> there) {
    auto leasing = lease_each(there, in_doubt);
    const std::vector<Leased> leased = co_await std::move(leasing);
    std::vector<Held*> all;
    std::vector<Transaction> requests;
    std::vector<const OwnerState*> places;
    auto deadline = boot_clock::time_point::min();
    for (std::size_t i = 0; i < there.size(); ++i) {
        Held* h = there[i];
        h->released = ReleaseResult::unreachable;
        if (!leased[i].lease) {
            h->release_error = leased[i].lease.error();
            h->detail = leased[i].detail;
            continue;
        }
        const OwnerStatePtr p = state_of(h->place);
        Transaction t;
        t.compare = {was_created(p->key, p->created)};
        t.success = {deletion(p->key, true)};
        // Whoever lost it has not finished, and is one that crashed to the next holder.
        if (!is_late(*h)) add_release(*p, h->outcome, t);
        add_tombstone(*p, *leased[i].lease, t);
        p->state = OwnerState::State::gone;  // what the watch says of it is no news
        requests.push_back(std::move(t));
        places.push_back(p.get());
        all.push_back(h);
        deadline = std::max(deadline, h->deadline);
    }
    if (all.empty()) co_return;
    add_leaving(places, requests);
    RequestInfo went;
    auto task = transact(std::move(requests), deadline, went);
    const auto results = co_await std::move(task);
    if (!results) {
        for (Held* h : all) {
            h->release_error = results.error();
            h->detail = went.detail.empty() ? results.error().message() : went.detail;
        }
        co_return;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const OwnerStatePtr p = state_of(all[i]->place);
        const Result& r = (*results)[i];
        queues_->leave(*p);
        if (!r.succeeded) {
            // Of two that were sent the first may have done it: core's next one tells.
            if (!went.repeated) all[i]->released = ReleaseResult::already_expired;
            continue;
        }
        const bool ours = !r.results.empty() && !r.results.front().found.empty() &&
                          p->learn(r.results.front().found.front().value);
        all[i]->released = !ours              ? ReleaseResult::owned_by_other
                           : is_late(*all[i]) ? ReleaseResult::already_expired
                                              : ReleaseResult::released;
    }
}

/// Its key outlives what was believed of it by a lock_delay.
bool EtcdBackend::is_late(const Held& h) {
    return h.lock_delay > milliseconds::zero() && h.sent >= state_of(h.place)->valid_until;
}

}  // namespace holdfast::etcd
