// Owners whose keys are in line: what fits is taken, the others wait, on the lease of all waiters.
#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "backend.hpp"
#include "errors.hpp"

namespace holdfast::etcd {

using spi::Attempt;

namespace {

/// How often what a watch says is checked.
milliseconds check_within(milliseconds ttl) noexcept {
    return std::max(milliseconds(5000), ttl / 2);
}

}  // namespace

awaitable<void> EtcdBackend::stand(Attempts all) {
    Attempts ready, waiting;
    for (Attempt* a : all) {
        const OwnerStatePtr p = state_of(a->place);
        const auto trusted = queues_->following() ? check_within(a->ttl) : look_within(a->ttl) / 2;
        const bool due = boot_clock::now() >= p->checked + trusted;
        if (p->state == OwnerState::State::queued && !queues_->fits(*p) && queues_->foremost(*p) &&
            (due || !queues_->known(p->line))) {
            auto looking = look_after(p, a->deadline);
            co_await std::move(looking);
        }
        if (p->state == OwnerState::State::gone) {
            start_over(*p);
            a->detail = "the lease of the key has ended";
            a->outcome = Attempt::Failed{make_error_code(errc::unavailable)};
            continue;
        }
        // Core refuses a grant that was answered too late, and asks again.
        if (p->state == OwnerState::State::held || queues_->fits(*p)) {
            ready.push_back(a);
            continue;
        }
        if (!a->queue) {
            auto giving_up = give_up(a);
            co_await std::move(giving_up);
            continue;
        }
        waiting.push_back(a);
    }
    if (!waiting.empty()) {
        tend();
        auto adopting = adopt(waiting);
        co_await std::move(adopting);
    }
    for (Attempt* a : waiting) {
        // What has come meanwhile has not woken an attempt that was under way.
        const OwnerState& p = *state_of(a->place);
        const bool again = p.state == OwnerState::State::gone || queues_->fits(p);
        a->outcome = Attempt::Busy{again ? milliseconds(1) : look_within(a->ttl)};
    }
    if (ready.empty()) co_return;
    auto task = take(std::move(ready));
    co_await std::move(task);
}

awaitable<void> EtcdBackend::give_up(Attempt* a) {
    std::array<Attempt*, 1> one{a};
    auto leaving = withdraw(one);
    co_await std::move(leaving);
    a->outcome = Attempt::Busy{look_within(a->ttl), true};
    if (a->withdrawal) a->outcome = Attempt::NoAnswer{a->withdrawal};
}

/// Its key is gone, and the next attempt makes another.
void EtcdBackend::start_over(OwnerState& p) {
    queues_->leave(p);
    p.state = OwnerState::State::asked;
    p.created = p.modified = p.lease = 0;
}

awaitable<void> EtcdBackend::look_after(OwnerStatePtr p, boot_clock::time_point deadline) {
    p->checked = boot_clock::now();
    std::int64_t created = 0;
    const std::string* key = queues_->ahead(*p, &created);
    // Who wants it alone waits for the one ahead. Whoever else leaves may let others in.
    const bool asks = key != nullptr && p->units.exclusive();
    if (asks) {
        Transaction still;
        still.compare = {was_created(*key, created), was_created(p->key, p->created)};
        std::vector<Transaction> one{std::move(still)};
        RequestInfo went;
        auto task = transact(std::move(one), deadline, went);
        const auto answer = co_await std::move(task);
        if (!answer || answer->front().succeeded) co_return;
        if (p->state != OwnerState::State::queued || queues_->fits(*p)) co_return;
        queues_->resume();
    }
    const bool was_known = queues_->known(p->line);
    QueueCache::Listing listing(*queues_, p->line);
    RequestInfo went;
    auto task = ask(p->line, after(p->line), 0, false, deadline, went);
    const auto answer = co_await std::move(task);
    if (!answer) co_return;
    const bool told = queues_->fits(*p) || p->state != OwnerState::State::queued;
    listing.done(answer->found, went.revision);
    if (was_known && !asks && !told && queues_->fits(*p)) queues_->resume();
}

awaitable<void> EtcdBackend::adopt(const Attempts& all) {
    std::vector<Change> changes;
    auto deadline = boot_clock::time_point::min();
    std::string detail;
    for (Attempt* a : all) {
        const OwnerStatePtr p = state_of(a->place);
        if (p->lease == leases_->waiting().id && leases_->waiting_alive()) continue;
        auto leasing = leases_->for_waiting(a->deadline, &detail);
        const result<Lease> lease = co_await std::move(leasing);
        if (!lease) co_return;
        if (p->state == OwnerState::State::queued && p->lease != lease->id)
            changes.push_back({p, *lease, p->units});
        deadline = std::max(deadline, a->deadline);
    }
    if (changes.empty()) co_return;
    auto task = change(changes, deadline, &detail);
    co_await std::move(task);
    for (const Change& c : changes)
        if (c.outcome == Change::Outcome::gone) c.place->state = OwnerState::State::gone;
}

awaitable<void> EtcdBackend::take(Attempts all) {
    auto leasing = lease_each(all, always);
    std::vector<Leased> leased = co_await std::move(leasing);
    std::vector<Change> changes;
    Attempts asked;
    auto deadline = boot_clock::time_point::min();
    for (std::size_t i = 0; i < all.size(); ++i) {
        Attempt* a = all[i];
        if (!leased[i].lease) {
            // Its key is there, and fits.
            a->detail = std::move(leased[i].detail);
            a->outcome = Attempt::NoAnswer{leased[i].lease.error()};
            continue;
        }
        changes.push_back({state_of(a->place), *leased[i].lease, a->units, true});
        asked.push_back(a);
        deadline = std::max(deadline, a->deadline);
    }
    if (changes.empty()) co_return;
    std::string detail;
    auto task = change(changes, deadline, &detail);
    const error_code why = co_await std::move(task);
    for (std::size_t i = 0; i < asked.size(); ++i) {
        Attempt& a = *asked[i];
        OwnerState& p = *changes[i].place;
        switch (changes[i].outcome) {
            case Change::Outcome::done:
                a.outcome = granted(a, changes[i].lease, changes[i].previous);
                continue;
            case Change::Outcome::unknown:
                a.detail = detail;
                a.outcome = Attempt::NoAnswer{why};
                continue;
            case Change::Outcome::gone:
                start_over(p);
                a.outcome = Attempt::Failed{make_error_code(errc::unavailable)};
                continue;
            case Change::Outcome::revoked:
                a.outcome = Attempt::Failed{make_error_code(errc::revoked)};
                continue;
            case Change::Outcome::other_kind:
                a.outcome = Attempt::Failed{make(Error::other_kind)};
                continue;
        }
    }
}

// --- waiters' lease
// -------------------------------------------------------------------------------

void EtcdBackend::tend() {
    if (tending_) return;
    tending_ = true;
    auto task = keep_waiting();
    asio::co_spawn(shared_->engine, std::move(task), asio::detached);
}

awaitable<void> EtcdBackend::keep_waiting() {
    const auto gone = gone_;
    const auto gate = tend_gate_;
    const auto shared = shared_;
    const auto leases = leases_;
    const auto queues = queues_;
    while (!*gone) {
        auto wait = gate->wait(shared->engine, boot_clock::now() + shared->options.ttl / 3);
        co_await std::move(wait);
        if (*gone) co_return;
        // A key that nobody deletes must not be kept alive: it would stand in line for ever.
        if (queues->drop_abandoned()) leases->leave_waiting();
        queues->tidy();
        const std::int64_t id = leases->waiting().id;
        if (queues->empty() || id == 0) continue;
        auto task = leases->keep_waiting(boot_clock::now() + shared->options.request_timeout);
        if (co_await std::move(task)) continue;
        if (*gone) co_return;
        for (const OwnerStatePtr& p : queues->waiting()) {
            if (p->lease != id) continue;
            p->state = OwnerState::State::gone;
            shared->events->wake(p->owner);
        }
    }
}

}  // namespace holdfast::etcd
