// How an owner comes to a key: made free, beside others of its kind, or in line.
#include <algorithm>

#include "backend.hpp"
#include "errors.hpp"

namespace holdfast::etcd {

using spi::Attempt;

awaitable<void> EtcdBackend::attempt(std::span<Attempt* const> items) {
    Attempts fresh, standing_now;
    for (Attempt* a : items) {
        OwnerStatePtr p = state_of(a->place);
        if (p && p->state != OwnerState::State::asked) {
            standing_now.push_back(a);
            continue;
        }
        if (!p) {
            p = std::make_shared<OwnerState>();
            p->owner = a->owner;
            p->line = line_of(shared_->options, a->name);
            p->key = p->line + p->owner;
            p->units = a->units;
            p->lock_delay = a->lock_delay;
            p->value = p->value_with(p->units);
            if (shared_->options.robust && !p->units.permits())
                p->marks = marks_of(shared_->options, a->name);
            a->place = p;
        }
        fresh.push_back(a);
    }
    // Two keys of one transaction would be created at once: each line once in each.
    while (!fresh.empty()) {
        Attempts part = take_apart(fresh, [](const Attempt* a, const Attempt* b) {
            return state_of(a->place)->line == state_of(b->place)->line;
        });
        auto task = enter(std::move(part), false);
        co_await std::move(task);
    }
    if (standing_now.empty()) co_return;
    auto task = stand(std::move(standing_now));
    co_await std::move(task);
}

std::vector<EtcdBackend::BatchItem> EtcdBackend::with_leases(const Attempts& all,
                                                             std::vector<Leased>& leased) {
    std::vector<BatchItem> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        Attempt* a = all[i];
        OwnerStatePtr p = state_of(a->place);
        const result<Lease>& own = leased[i].lease;
        if (!own) {
            a->detail = std::move(leased[i].detail);
            if (p->perhaps)
                a->outcome = Attempt::NoAnswer{own.error()};
            else
                a->outcome = Attempt::Failed{own.error()};
            continue;
        }
        BatchItem one{a, p, *own, {}, nullptr};
        if ((a->queue || p->perhaps) && !queues_->known(p->line))
            one.listing = std::make_unique<QueueCache::Listing>(*queues_, p->line);
        one.how.queue = a->queue;
        one.how.list = one.listing != nullptr;
        one.how.lease = own->id;
        one.how.tombstone = tombstone_of(shared_->options, p->owner);
        out.push_back(std::move(one));
    }
    return out;
}

EtcdBackend::Attempts EtcdBackend::not_entered(std::vector<BatchItem>& asked, error_code why,
                                               const std::string& detail) {
    Attempts full;
    for (BatchItem& one : asked) {
        one.attempt->detail = detail.empty() ? why.message() : detail;
        if (why == make(Error::no_space)) full.push_back(one.attempt);
        if (one.place->perhaps)
            one.attempt->outcome = Attempt::NoAnswer{why};
        else
            one.attempt->outcome = Attempt::Failed{why, why == make(Error::overloaded)};
    }
    return full;
}

awaitable<void> EtcdBackend::enter(Attempts all, bool again) {
    auto leasing = lease_each(all, always);
    std::vector<Leased> leased = co_await std::move(leasing);
    std::vector<BatchItem> asked = with_leases(all, leased);
    if (asked.empty()) co_return;
    std::vector<Transaction> requests;
    auto length = Members::Length::brief;
    auto deadline = boot_clock::time_point::min();
    for (const BatchItem& one : asked) {
        if (one.how.list || one.place->units.permits()) length = Members::Length::list;
        requests.push_back(entering(*one.place, one.how));
        deadline = std::max(deadline, one.attempt->deadline);
        asking_.push_back(one.own.id);
    }
    RequestInfo went;
    auto task = transact(std::move(requests), deadline, went, length);
    const auto results = co_await std::move(task);
    Attempts behind, leaving, marked, full;
    std::vector<std::int64_t> markers;
    for (BatchItem& one : asked) {
        const auto at = std::find(asking_.begin(), asking_.end(), one.own.id);
        if (at != asking_.end()) asking_.erase(at);
        one.place->perhaps = one.place->perhaps || went.doubt;
        one.place->doubt = one.place->doubt || went.late;
    }
    if (!results) full = not_entered(asked, results.error(), went.detail);
    for (std::size_t i = 0; results && i < asked.size(); ++i) {
        BatchItem& one = asked[i];
        std::int64_t marker = 0;
        const Next next = entered(one, (*results)[i], went.revision, marker);
        if (next == Next::stand) behind.push_back(one.attempt);
        if (next == Next::leave) leaving.push_back(one.attempt);
        if (next != Next::clear) continue;
        one.attempt->outcome = Attempt::Failed{make_error_code(errc::kind_mismatch)};
        marked.push_back(one.attempt);
        markers.push_back(marker);
    }
    asked.clear();
    // The one request that raises the alarm may have been executed. Deletions are still accepted.
    if (!full.empty()) {
        auto withdrawing = withdraw(full);
        co_await std::move(withdrawing);
    }
    for (Attempt* a : full)
        if (!a->withdrawal) a->outcome = Attempt::Failed{make(Error::no_space)};
    for (Attempt* a : leaving) {
        auto giving_up = give_up(a);
        co_await std::move(giving_up);
    }
    if (!again && !marked.empty()) {
        auto clearing_task = clear(std::move(marked), std::move(markers));
        co_await std::move(clearing_task);
    }
    if (behind.empty()) co_return;
    auto standing_task = stand(std::move(behind));
    co_await std::move(standing_task);
}

EtcdBackend::Next EtcdBackend::entered(const BatchItem& one, const Result& r, std::int64_t revision,
                                       std::int64_t& marker) {
    Attempt& a = *one.attempt;
    const OwnerStatePtr& p = one.place;
    const Entered e = read_entering(*p, one.how, r);
    using enum Entered::Outcome;
    switch (e.outcome) {
        case granted:
        case made: {
            p->created = p->modified = revision;
            p->lease = one.own.id;
            // The answer has the line as it was when the key was made, and the lease is its own.
            const bool fits =
                e.outcome == granted || (p->units.permits() && UnitQueue(*e.line).fits(revision));
            if (!fits) break;
            p->lease_certain = true;
            a.outcome = this->granted(a, one.own, e.previous);
            return Next::nothing;
        }
        case stands:
            p->created = e.found.created;
            p->modified = e.found.modified;
            p->lease = e.found.lease;
            break;
        case busy:
            a.outcome = Attempt::Busy{look_within(a.ttl), true};
            return Next::nothing;
        case left:
            a.outcome = Attempt::Failed{make_error_code(errc::cancelled)};
            return Next::nothing;
        case other_kind:
            a.outcome = Attempt::Failed{make_error_code(errc::kind_mismatch)};
            return Next::nothing;
        case foreign:
            a.outcome = Attempt::Failed{make(Error::other_kind)};
            return Next::nothing;
        case marked:
            marker = e.found.created;
            return Next::clear;
        case unreadable:
            p->perhaps = p->doubt = true;
            a.outcome = Attempt::NoAnswer{make(Error::protocol)};
            return Next::nothing;
    }
    p->state = OwnerState::State::queued;
    p->checked = boot_clock::now();
    queues_->join(p);
    if (one.listing) one.listing->done(*e.line, revision);
    return e.outcome == made && !a.queue ? Next::leave : Next::stand;
}

awaitable<void> EtcdBackend::clear(Attempts all, std::vector<std::int64_t> markers) {
    std::vector<Transaction> requests;
    auto deadline = boot_clock::time_point::min();
    for (std::size_t i = 0; i < all.size(); ++i) {
        requests.push_back(clearing(*state_of(all[i]->place), markers[i]));
        deadline = std::max(deadline, all[i]->deadline);
    }
    RequestInfo went;
    auto task = transact(std::move(requests), deadline, went);
    const auto results = co_await std::move(task);
    Attempts anew;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!results) {
            all[i]->detail = went.detail;
            all[i]->outcome = Attempt::Failed{results.error()};
        } else if (all[i]->units.permits() || is_clear((*results)[i], markers[i])) {
            anew.push_back(all[i]);
        }
    }
    if (anew.empty()) co_return;
    auto entering_task = enter(std::move(anew), true);
    co_await std::move(entering_task);
}

}  // namespace holdfast::etcd
