// Another lease for a key, while it is there and not revoked: how a waiter becomes a holder, how a
// grant is renewed, and, with fewer units in the same step, how a writer becomes a reader.
#include <algorithm>

#include "backend.hpp"
#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "marks.hpp"

namespace holdfast::etcd {

using spi::Attempt;
using spi::Held;

namespace {

/// What may be believed of a lease: it goes on for the delay, or longer.
milliseconds believed(const Lease& l, milliseconds ttl, milliseconds delay) noexcept {
    return delay > milliseconds::zero() ? std::min(ttl, l.ttl - delay) : l.ttl;
}

}  // namespace

Attempt::Granted EtcdBackend::granted(const Attempt& a, const Lease& l, PreviousHolder previous) {
    OwnerState& p = *state_of(a.place);
    p.state = OwnerState::State::held;
    queues_->hold(p);
    Attempt::Granted g;
    if (!p.units.permits()) g.token.value = static_cast<std::uint64_t>(p.created);
    g.ttl = believed(l, a.ttl, a.lock_delay);
    g.base = l.base;
    g.previous = previous;
    p.valid_until = spi::valid_until(l.base, g.ttl);
    return g;
}

Transaction EtcdBackend::changing(const Change& c) {
    const OwnerState& p = *c.place;
    Transaction t;
    t.compare = {was_created(p.key, p.created), was_modified(p.key, p.modified),
                 has_value(p.key, p.value)};
    if (c.units == p.units) {
        t.success = {put_lease(p.key, c.lease.id)};
    } else {
        t.success = {put(p.key, p.value_with(c.units), c.lease.id)};
        add_downgrade(p, c.lease.id, t);
    }
    if (c.grant) add_grant(p, t);
    t.failure = {etcd::range(p.key)};
    if (c.grant) {
        t.compare.push_back(proper_name(p));
        t.failure.push_back(etcd::range(name_key(p.line)));
    }
    return t;
}

void EtcdBackend::changed(Change& c, const Result& r, std::int64_t revision) {
    OwnerState& p = *c.place;
    p.modified = revision;
    p.lease = c.lease.id;
    p.lease_certain = true;
    if (c.grant) c.previous = read_grant(p, r);
    p.value = p.value_with(c.units);
    p.units = c.units;
    c.outcome = Change::Outcome::done;
}

void EtcdBackend::not_changed(Change& c, const Result& r) {
    OwnerState& p = *c.place;
    const KeyValue* kv = nullptr;
    if (!r.results.empty() && !r.results.front().found.empty())
        kv = &r.results.front().found.front();
    if (kv == nullptr || kv->created != p.created)
        c.outcome = Change::Outcome::gone;
    else if (!p.learn(kv->value))
        c.outcome = Change::Outcome::revoked;
    else if (c.grant && r.results.size() == 2 && !is_proper(p, r.results.back().found))
        c.outcome = Change::Outcome::other_kind;
    else
        p.modified = kv->modified;  // one of ours that was not answered, or it is asked
}

awaitable<error_code> EtcdBackend::change(std::vector<Change>& all, boot_clock::time_point deadline,
                                          std::string* detail) {
    constexpr int most_rounds = 3;
    error_code why = make(Error::refused);
    for (int round = 0; round < most_rounds; ++round) {
        std::vector<Change*> open;
        std::vector<Transaction> requests;
        for (Change& c : all) {
            if (c.outcome != Change::Outcome::unknown) continue;
            c.place->lease_certain = false;
            requests.push_back(changing(c));
            open.push_back(&c);
        }
        if (open.empty()) co_return error_code();
        RequestInfo went;
        auto task = transact(std::move(requests), deadline, went);
        const auto results = co_await std::move(task);
        if (!results) {
            *detail = went.detail.empty() ? results.error().message() : went.detail;
            co_return results.error();
        }
        for (std::size_t i = 0; i < open.size(); ++i) {
            const Result& r = (*results)[i];
            if (r.succeeded)
                changed(*open[i], r, went.revision);
            else
                not_changed(*open[i], r);
        }
    }
    const bool all_done = std::all_of(all.begin(), all.end(), [](const Change& c) {
        return c.outcome != Change::Outcome::unknown;
    });
    co_return all_done ? error_code() : why;
}

awaitable<void> EtcdBackend::renew(std::span<Held* const> items) {
    const std::vector<Held*> asked(items.begin(), items.end());
    auto leasing = lease_each(asked, always);
    const std::vector<Leased> leased = co_await std::move(leasing);
    std::vector<Held*> all;
    std::vector<Change> changes;
    auto deadline = boot_clock::time_point::min();
    for (std::size_t i = 0; i < asked.size(); ++i) {
        Held* h = asked[i];
        h->renewal = Held::Renewal::unknown;
        if (!leased[i].lease) {
            h->renewal_error = leased[i].lease.error();
            h->detail = leased[i].detail;
            continue;
        }
        changes.push_back({state_of(h->place), *leased[i].lease, h->units});
        all.push_back(h);
        deadline = std::max(deadline, h->deadline);
    }
    if (all.empty()) co_return;
    std::string detail;
    auto task = change(changes, deadline, &detail);
    const error_code why = co_await std::move(task);
    if (why && detail.empty()) detail = why.message();
    for (std::size_t i = 0; i < all.size(); ++i) {
        Held& h = *all[i];
        OwnerState& p = *changes[i].place;
        const Lease& lease = changes[i].lease;
        h.asked = p.asked;
        switch (changes[i].outcome) {
            case Change::Outcome::done:
                h.renewal = Held::Renewal::renewed;
                h.renewed_base = lease.base;
                h.renewed_ttl = believed(lease, h.ttl, h.lock_delay);
                p.valid_until = spi::valid_until(lease.base, *h.renewed_ttl);
                break;
            case Change::Outcome::unknown:
                h.renewal_error = why;
                h.detail = detail;
                break;
            case Change::Outcome::other_kind:  // of those that take only
            case Change::Outcome::gone:
                h.renewal = Held::Renewal::lost;
                h.renewal_error = make_error_code(errc::lost);
                h.detail = "its key is not there any more";
                break;
            case Change::Outcome::revoked:
                h.renewal = Held::Renewal::lost;
                h.renewal_error = make_error_code(errc::revoked);
                break;
        }
    }
}

}  // namespace holdfast::etcd
