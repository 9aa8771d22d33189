#include "backend.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "errors.hpp"
#include "keys.hpp"

namespace holdfast::etcd {
namespace {

using spi::Attempt;
using spi::Held;

PlacePtr place_of(const std::shared_ptr<void>& p) {
    return std::static_pointer_cast<Place>(p);
}

milliseconds look_within(milliseconds ttl) noexcept {
    return std::min(milliseconds(1000), ttl / 3);
}

/// How often what a watch says is checked.
milliseconds check_within(milliseconds ttl) noexcept {
    return std::max(milliseconds(5000), ttl / 2);
}

Attempt::Granted granted(Place& p, const Lease& l) {
    p.state = Place::State::held;
    Attempt::Granted g;
    g.token.value = static_cast<std::uint64_t>(p.created);
    g.ttl = l.ttl;
    g.base = l.base;
    return g;
}

}  // namespace

EtcdBackend::EtcdBackend(const spi::Settings& s, spi::Context c)
    : capabilities_(promises(s)),
      shared_(std::make_shared<Shared>(s, c)),
      members_(std::make_shared<Members>(shared_)),
      leases_(std::make_shared<Leases>(shared_, members_)),
      lines_(std::make_shared<Lines>(shared_, members_)) {}

EtcdBackend::~EtcdBackend() {
    *gone_ = true;
}

awaitable<void> EtcdBackend::close() {
    lines_->stop();
    const auto deadline = boot_clock::now() + milliseconds(150);
    // Grants that are asked for may still come: with their leases they end.
    auto asking = std::move(asking_);
    std::sort(asking.begin(), asking.end());
    asking.erase(std::unique(asking.begin(), asking.end()), asking.end());
    for (const std::int64_t id : asking) {
        auto ending = leases_->end(id, deadline);
        co_await std::move(ending);
    }
    auto waiters = leases_->end_waiting(deadline);
    co_await std::move(waiters);
    members_->close();
    *gone_ = true;
    tend_gate_->open();
}

// --- requests
// -------------------------------------------------------------------------------------

awaitable<result<std::vector<Result>>> EtcdBackend::transact(std::vector<Transaction> all,
                                                             boot_clock::time_point deadline,
                                                             Went& went) {
    std::string body;
    if (all.size() == 1) {
        body = all.front().text();
    } else {
        Transaction outer;
        for (const Transaction& t : all)
            outer.success.push_back(t.nested());
        body = outer.text();
    }
    auto task = members_->post("kv/txn", std::move(body), deadline, &went.detail);
    const Members::Answer answer = co_await std::move(task);
    went.doubt = answer.doubt;
    went.repeated = answer.repeated;
    if (answer.why) co_return answer.why;
    went.revision = revision_of(answer.body);
    std::vector<Result> results;
    Result whole = read_transaction(answer.body);
    if (all.size() == 1)
        results.push_back(std::move(whole));
    else
        results = std::move(whole.results);
    if (went.revision <= 0 || results.size() != all.size()) {
        went.doubt = true;
        co_return make(Error::protocol);
    }
    co_return results;
}

awaitable<result<Result>> EtcdBackend::ask(std::string begin, std::string end, std::int64_t limit,
                                           bool keys_only, boot_clock::time_point deadline,
                                           Went& went) {
    auto task = members_->post("kv/range", range_alone(begin, end, limit, keys_only), deadline,
                               &went.detail);
    const Members::Answer answer = co_await std::move(task);
    if (answer.why) co_return answer.why;
    went.revision = revision_of(answer.body);
    if (went.revision <= 0) co_return make(Error::protocol);
    co_return read_range(answer.body);
}

// --- attempt
// --------------------------------------------------------------------------------------

awaitable<void> EtcdBackend::attempt(std::span<Attempt* const> items) {
    Attempts fresh, standing_now;
    for (Attempt* a : items) {
        PlacePtr p = place_of(a->place);
        if (p && p->state != Place::State::asked) {
            standing_now.push_back(a);
            continue;
        }
        if (!p) {
            p = std::make_shared<Place>();
            p->owner = a->owner;
            p->line = line_of(shared_->options, a->name);
            p->key = p->line + p->owner;
            p->value = write_entry(p->owner, false);
            a->place = p;
        }
        fresh.push_back(a);
    }
    // Two keys of one transaction would be created at once: each line once in each.
    while (!fresh.empty()) {
        Attempts part, rest;
        for (Attempt* a : fresh) {
            const auto same = [a](const Attempt* b) {
                return place_of(a->place)->line == place_of(b->place)->line;
            };
            (std::any_of(part.begin(), part.end(), same) ? rest : part).push_back(a);
        }
        fresh = std::move(rest);
        auto task = enter(std::move(part));
        co_await std::move(task);
    }
    auto task = stand(std::move(standing_now));
    co_await std::move(task);
}

awaitable<void> EtcdBackend::enter(Attempts all) {
    struct Asked {
        Attempt* attempt;
        PlacePtr place;
        Lease own;
        std::unique_ptr<Lines::Listing> listing;
    };
    std::vector<Asked> asked;
    std::vector<Transaction> requests;
    auto deadline = boot_clock::time_point::min();
    for (Attempt* a : all) {
        PlacePtr p = place_of(a->place);
        std::string detail;
        auto leasing = leases_->young(a->ttl, a->deadline, &detail);
        const result<Lease> own = co_await std::move(leasing);
        if (!own) {
            a->detail = detail.empty() ? own.error().message() : std::move(detail);
            if (p->doubt)
                a->outcome = Attempt::NoAnswer{own.error()};
            else
                a->outcome = Attempt::Failed{own.error()};
            continue;
        }
        Asked one{a, p, *own, nullptr};
        if ((a->queue || p->doubt) && !lines_->known(p->line))
            one.listing = std::make_unique<Lines::Listing>(*lines_, p->line);
        const std::string grave = grave_of(shared_->options, p->owner);
        Transaction stands;
        stands.compare = {was_created(grave, 0), was_created(p->key, 0)};
        stands.success = {put(p->key, p->value, own->id)};
        stands.failure = {etcd::range(p->key)};
        Transaction t;
        t.compare = {was_created(grave, 0), none_in(p->line, after(p->line))};
        t.success = {put(p->key, p->value, own->id)};
        t.failure = {a->queue ? stands.nested() : etcd::range(p->key)};
        if (one.listing) t.failure.push_back(etcd::range(p->line, after(p->line), 0));
        requests.push_back(std::move(t));
        deadline = std::max(deadline, a->deadline);
        asking_.push_back(own->id);
        asked.push_back(std::move(one));
    }
    if (asked.empty()) co_return;
    Went went;
    auto task = transact(std::move(requests), deadline, went);
    const auto results = co_await std::move(task);
    Attempts behind;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        Asked& one = asked[i];
        const auto at = std::find(asking_.begin(), asking_.end(), one.own.id);
        if (at != asking_.end()) asking_.erase(at);
        one.place->doubt = one.place->doubt || went.doubt;
        if (!results) {
            one.attempt->detail = went.detail.empty() ? results.error().message() : went.detail;
            if (one.place->doubt)
                one.attempt->outcome = Attempt::NoAnswer{results.error()};
            else
                one.attempt->outcome =
                    Attempt::Failed{results.error(), results.error() == make(Error::overloaded)};
            continue;
        }
        if (entered(*one.attempt, one.place, one.own, (*results)[i], went.revision,
                    one.listing.get()))
            behind.push_back(one.attempt);
    }
    asked.clear();
    auto standing_task = stand(std::move(behind));
    co_await std::move(standing_task);
}

/// True: its key is in line.
bool EtcdBackend::entered(Attempt& a, const PlacePtr& p, const Lease& own, const Result& r,
                          std::int64_t revision, Lines::Listing* listing) {
    if (r.succeeded) {
        p->created = p->modified = revision;
        p->lease = own.id;
        a.outcome = granted(*p, own);
        return false;
    }
    const bool complete = r.results.size() == (listing != nullptr ? 2U : 1U);
    const std::vector<KeyValue>* found = nullptr;
    if (complete && a.queue && !r.results[0].results.empty())
        found = &r.results[0].results[0].found;
    else if (complete && !a.queue)
        found = &r.results[0].found;
    if (found == nullptr) {
        p->doubt = true;
        a.outcome = Attempt::NoAnswer{make(Error::protocol)};
        return false;
    }
    if (a.queue && r.results[0].succeeded) {
        p->created = p->modified = revision;
        p->lease = own.id;
    } else if (found->empty()) {
        if (a.queue)
            a.outcome = Attempt::Failed{make_error_code(errc::cancelled)};  // it has left before
        else
            a.outcome = Attempt::Busy{look_within(a.ttl), true};
        return false;
    } else {
        const KeyValue& kv = found->front();
        p->created = kv.created;
        p->modified = kv.modified;
        p->lease = kv.lease;
    }
    p->state = Place::State::queued;
    p->checked = boot_clock::now();
    lines_->join(p);
    if (listing != nullptr) listing->done(r.results[1].found, revision);
    return true;
}

awaitable<void> EtcdBackend::stand(Attempts all) {
    Attempts ready, waiting;
    for (Attempt* a : all) {
        const PlacePtr p = place_of(a->place);
        const auto trusted = lines_->following() ? check_within(a->ttl) : look_within(a->ttl) / 2;
        const bool due = boot_clock::now() >= p->checked + trusted;
        if (p->state == Place::State::queued && !lines_->first(*p) && lines_->foremost(*p) &&
            (due || !lines_->known(p->line))) {
            auto looking = look_after(p, a->deadline);
            co_await std::move(looking);
        }
        if (p->state == Place::State::gone) {
            start_over(*p);
            a->detail = "the lease of the key has ended";
            a->outcome = Attempt::PlaceLost{};
            continue;
        }
        if (lines_->first(*p)) {
            ready.push_back(a);
            continue;
        }
        if (!a->queue) {
            // One try, which leaves nothing behind.
            std::array<Attempt*, 1> one{a};
            auto leaving = withdraw(one);
            co_await std::move(leaving);
            a->outcome = Attempt::Busy{look_within(a->ttl), true};
            if (a->withdrawal) a->outcome = Attempt::NoAnswer{a->withdrawal};
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
        const Place& p = *place_of(a->place);
        const bool again = p.state == Place::State::gone || lines_->first(p);
        a->outcome = Attempt::Busy{again ? milliseconds(1) : look_within(a->ttl)};
    }
    auto task = take(std::move(ready));
    co_await std::move(task);
}

/// Its key is gone, and the next attempt makes another.
void EtcdBackend::start_over(Place& p) {
    lines_->leave(p);
    p.state = Place::State::asked;
    p.created = p.modified = p.lease = 0;
}

awaitable<void> EtcdBackend::look_after(PlacePtr p, boot_clock::time_point deadline) {
    p->checked = boot_clock::now();
    std::int64_t created = 0;
    if (const std::string* key = lines_->ahead(*p, &created)) {
        Transaction still;
        still.compare = {was_created(*key, created), was_created(p->key, p->created)};
        std::vector<Transaction> one{std::move(still)};
        Went went;
        auto task = transact(std::move(one), deadline, went);
        const auto answer = co_await std::move(task);
        if (!answer || answer->front().succeeded) co_return;
        if (p->state != Place::State::queued || lines_->first(*p)) co_return;
        lines_->resume();
    }
    Lines::Listing listing(*lines_, p->line);
    Went went;
    auto task = ask(p->line, after(p->line), 0, false, deadline, went);
    const auto answer = co_await std::move(task);
    if (answer) listing.done(answer->found, went.revision);
}

awaitable<void> EtcdBackend::adopt(const Attempts& all) {
    std::vector<Change> changes;
    auto deadline = boot_clock::time_point::min();
    std::string detail;
    for (Attempt* a : all) {
        const PlacePtr p = place_of(a->place);
        if (p->lease == leases_->waiting().id && leases_->waiting_alive()) continue;
        auto leasing = leases_->for_waiting(a->deadline, &detail);
        const result<Lease> lease = co_await std::move(leasing);
        if (!lease) co_return;
        if (p->state == Place::State::queued && p->lease != lease->id)
            changes.push_back({p, *lease});
        deadline = std::max(deadline, a->deadline);
    }
    if (changes.empty()) co_return;
    auto task = change(changes, deadline, &detail);
    co_await std::move(task);
    for (const Change& c : changes)
        if (c.outcome == Change::Outcome::gone) c.place->state = Place::State::gone;
}

awaitable<void> EtcdBackend::take(Attempts all) {
    if (all.empty()) co_return;
    std::vector<Change> changes;
    Attempts asked;
    auto deadline = boot_clock::time_point::min();
    for (Attempt* a : all) {
        std::string detail;
        auto leasing = leases_->young(a->ttl, a->deadline, &detail);
        const result<Lease> own = co_await std::move(leasing);
        if (!own) {
            // Its key is there, and first.
            a->detail = detail.empty() ? own.error().message() : std::move(detail);
            a->outcome = Attempt::NoAnswer{own.error()};
            continue;
        }
        changes.push_back({place_of(a->place), *own});
        asked.push_back(a);
        deadline = std::max(deadline, a->deadline);
    }
    if (changes.empty()) co_return;
    std::string detail;
    auto task = change(changes, deadline, &detail);
    const error_code why = co_await std::move(task);
    for (std::size_t i = 0; i < asked.size(); ++i) {
        Attempt& a = *asked[i];
        Place& p = *changes[i].place;
        switch (changes[i].outcome) {
            case Change::Outcome::done:
                a.outcome = granted(p, changes[i].lease);
                continue;
            case Change::Outcome::unknown:
                a.detail = detail;
                a.outcome = Attempt::NoAnswer{why};
                continue;
            case Change::Outcome::gone:
                start_over(p);
                a.outcome = Attempt::PlaceLost{};
                continue;
            case Change::Outcome::revoked:
                a.outcome = Attempt::Failed{make_error_code(errc::revoked)};
                continue;
        }
    }
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
            const Place& p = *c.place;
            Transaction t;
            t.compare = {was_created(p.key, p.created), was_modified(p.key, p.modified),
                         has_value(p.key, p.value)};
            t.success = {put_lease(p.key, c.lease.id)};
            t.failure = {etcd::range(p.key)};
            requests.push_back(std::move(t));
            open.push_back(&c);
        }
        if (open.empty()) co_return error_code();
        Went went;
        auto task = transact(std::move(requests), deadline, went);
        const auto results = co_await std::move(task);
        if (!results) {
            *detail = went.detail.empty() ? results.error().message() : went.detail;
            co_return results.error();
        }
        for (std::size_t i = 0; i < open.size(); ++i) {
            Change& c = *open[i];
            Place& p = *c.place;
            const Result& r = (*results)[i];
            if (r.succeeded) {
                p.modified = went.revision;
                p.lease = c.lease.id;
                c.outcome = Change::Outcome::done;
                continue;
            }
            const KeyValue* kv = nullptr;
            if (!r.results.empty() && !r.results.front().found.empty())
                kv = &r.results.front().found.front();
            if (kv == nullptr || kv->created != p.created)
                c.outcome = Change::Outcome::gone;
            else if (kv->value != p.value)
                c.outcome = Change::Outcome::revoked;
            else
                p.modified = kv->modified;  // one of ours, which was not answered
        }
    }
    const bool all_done = std::all_of(all.begin(), all.end(), [](const Change& c) {
        return c.outcome != Change::Outcome::unknown;
    });
    co_return all_done ? error_code() : why;
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
    const auto lines = lines_;
    while (!*gone) {
        auto wait = gate->wait(shared->engine, boot_clock::now() + shared->options.ttl / 3);
        co_await std::move(wait);
        if (*gone) co_return;
        lines->tidy();
        const std::int64_t id = leases->waiting().id;
        if (lines->empty() || id == 0) continue;
        auto task = leases->keep_waiting(boot_clock::now() + shared->options.request_timeout);
        if (co_await std::move(task)) continue;
        if (*gone) co_return;
        for (const PlacePtr& p : lines->waiting()) {
            if (p->lease != id) continue;
            p->state = Place::State::gone;
            shared->events->wake(p->owner);
        }
    }
}

// --- withdraw and release
// -------------------------------------------------------------------------

awaitable<void> EtcdBackend::withdraw(std::span<Attempt* const> items) {
    Attempts all;
    std::vector<Transaction> requests;
    auto deadline = boot_clock::time_point::min();
    for (Attempt* a : items) {
        const PlacePtr p = place_of(a->place);
        a->withdrawal = {};
        if (!p || (p->created == 0 && !p->doubt)) continue;
        Transaction t;
        t.success = {deletion(p->key)};
        if (p->doubt) {
            // For as long as the lease that a late request would use, or longer.
            std::string detail;
            auto leasing = leases_->young(a->ttl, a->deadline, &detail);
            const result<Lease> lease = co_await std::move(leasing);
            if (!lease) {
                a->withdrawal = lease.error();
                continue;
            }
            t.success.push_back(put(grave_of(shared_->options, p->owner), "", lease->id));
        }
        if (p->state == Place::State::queued) p->state = Place::State::gone;
        requests.push_back(std::move(t));
        all.push_back(a);
        deadline = std::max(deadline, a->deadline);
    }
    if (all.empty()) co_return;
    Went went;
    auto task = transact(std::move(requests), deadline, went);
    const auto results = co_await std::move(task);
    for (Attempt* a : all) {
        const PlacePtr p = place_of(a->place);
        a->withdrawal = results ? error_code() : results.error();
        if (!results) continue;
        p->state = Place::State::gone;
        lines_->leave(*p);
        a->place.reset();
    }
}

awaitable<void> EtcdBackend::release(std::span<Held* const> items) {
    std::vector<Held*> all;
    std::vector<Transaction> requests;
    auto deadline = boot_clock::time_point::min();
    for (Held* h : items) {
        h->released = ReleaseResult::unreachable;
        const PlacePtr p = place_of(h->place);
        Transaction t;
        t.compare = {was_created(p->key, p->created)};
        t.success = {deletion(p->key, true)};
        if (p->doubt) {
            std::string detail;
            auto leasing = leases_->young(h->ttl, h->deadline, &detail);
            const result<Lease> lease = co_await std::move(leasing);
            if (!lease) continue;
            t.success.push_back(put(grave_of(shared_->options, p->owner), "", lease->id));
        }
        p->state = Place::State::gone;  // what the watch says of it is no news
        requests.push_back(std::move(t));
        all.push_back(h);
        deadline = std::max(deadline, h->deadline);
    }
    if (all.empty()) co_return;
    Went went;
    auto task = transact(std::move(requests), deadline, went);
    const auto results = co_await std::move(task);
    if (!results) co_return;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const PlacePtr p = place_of(all[i]->place);
        const Result& r = (*results)[i];
        lines_->leave(*p);
        if (!r.succeeded) {
            // Of two that were sent the first may have done it: core's next one tells.
            if (!went.repeated) all[i]->released = ReleaseResult::already_expired;
            continue;
        }
        const bool ours = !r.results.empty() && !r.results.front().found.empty() &&
                          r.results.front().found.front().value == p->value;
        all[i]->released = ours ? ReleaseResult::released : ReleaseResult::owned_by_other;
    }
}

// --- renew
// ----------------------------------------------------------------------------------------

awaitable<void> EtcdBackend::renew(std::span<Held* const> items) {
    std::vector<Held*> all;
    std::vector<Change> changes;
    auto deadline = boot_clock::time_point::min();
    for (Held* h : items) {
        h->renewal = Held::Renewal::unknown;
        std::string detail;
        auto leasing = leases_->young(h->ttl, h->deadline, &detail);
        const result<Lease> lease = co_await std::move(leasing);
        if (!lease) {
            h->renewal_error = lease.error();
            continue;
        }
        changes.push_back({place_of(h->place), *lease});
        all.push_back(h);
        deadline = std::max(deadline, h->deadline);
    }
    if (all.empty()) co_return;
    std::string detail;
    auto task = change(changes, deadline, &detail);
    const error_code why = co_await std::move(task);
    for (std::size_t i = 0; i < all.size(); ++i) {
        Held& h = *all[i];
        switch (changes[i].outcome) {
            case Change::Outcome::done:
                h.renewal = Held::Renewal::renewed;
                h.renewed_base = changes[i].lease.base;
                h.renewed_ttl = changes[i].lease.ttl;
                break;
            case Change::Outcome::unknown:
                h.renewal_error = why;
                break;
            case Change::Outcome::gone:
            case Change::Outcome::revoked:
                h.renewal = Held::Renewal::lost;
                h.renewal_error = make_error_code(
                    changes[i].outcome == Change::Outcome::gone ? errc::lost : errc::revoked);
                break;
        }
    }
}

}  // namespace holdfast::etcd
