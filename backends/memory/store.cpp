#include "store.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "holdfast/spi/holder.hpp"

namespace holdfast::memory {
namespace {

constexpr milliseconds longest_look{1000};

using Holding = Entry::Holding;
using Waiting = Entry::Waiting;

milliseconds left(time_point until, time_point now) {
    return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(until - now));
}

Holder described(std::string_view owner, const spi::Units& units) {
    Holder h = spi::holder_of(owner);
    h.mode = units.mode;
    h.permits = units.permits() ? units.take : 1;
    return h;
}

Holder described(const Holding& held, time_point now) {
    Holder h = described(held.owner, held.units);
    h.token = held.token;
    h.ttl_left = left(held.valid, now);
    h.held_for = std::chrono::floor<milliseconds>(now - held.since);
    h.revoked = held.revoked;
    h.asked = held.asked;
    return h;
}

auto find(std::vector<Holding>& all, std::string_view owner) {
    return std::find_if(all.begin(), all.end(), [&](const Holding& h) { return h.owner == owner; });
}

void leave_line(Entry& e, std::string_view owner) {
    std::erase_if(e.queue, [&](const Waiting& w) { return w.owner == owner; });
}

bool is_dead(const Waiting& w, time_point now) {
    return w.alive_until < now;
}

/// A dead waiter that others stand before is passed over until it is the first.
void drop_dead(Entry& e, time_point now) {
    std::erase_if(e.holders, [&](const Holding& h) { return h.expires <= now; });
    std::erase_if(e.gone, [&](const Entry::Gone& g) { return g.until <= now; });
    while (!e.queue.empty() && is_dead(e.queue.front(), now))
        e.queue.pop_front();
}

std::uint64_t used(const Entry& e) {
    std::uint64_t sum = 0;
    for (const Holding& h : e.holders)
        sum += h.units.take;
    return sum;
}

/// The name is of another kind, or has another limit, while anybody holds or waits. All of them are
/// alike: none of another kind was let in.
bool of_another_kind(const Entry& e, const spi::Units& u) {
    if (!e.holders.empty()) return e.holders.front().units.of != u.of;
    return !e.queue.empty() && e.queue.front().units.of != u.of;
}

bool was_broken(const Entry& e, std::string_view owner) {
    return std::any_of(e.gone.begin(), e.gone.end(),
                       [&](const Entry::Gone& g) { return g.owner == owner; });
}

bool is_meant(const Holding& h, const HolderFilter& which) {
    return !h.owner.empty() && spi::is_meant(which, h.owner, h.token);
}

struct Stores {
    const pid_t process = ::getpid();
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Store>> all;
};

// The child of a fork has a copy of its parent's, with mutexes that threads of the parent hold and
// leases that nobody renews: it begins with none.
Stores& of_this_process() {
    static constinit std::atomic<Stores*> current{nullptr};
    Stores* mine = current.load();
    while (mine == nullptr || mine->process != ::getpid()) {
        auto fresh = std::make_unique<Stores>();
        if (current.compare_exchange_strong(mine, fresh.get())) mine = fresh.release();
    }
    return *mine;
}

}  // namespace

std::shared_ptr<Store> Store::named(const std::string& name) {
    Stores& mine = of_this_process();
    const std::lock_guard hold(mine.mutex);
    auto& store = mine.all[name];
    if (!store) store = std::make_shared<Store>();
    return store;
}

Store::Turn::~Turn() {
    if (news_.empty()) return;
    for (const News& n : news_)
        store_.telling_.insert(n.events);
    hold_.unlock();
    for (const News& n : news_) {
        if (n.asked)
            n.events->asked(n.owner);
        else
            n.events->wake(n.owner);
    }
    hold_.lock();
    for (const News& n : news_)
        store_.telling_.erase(store_.telling_.find(n.events));
    store_.told_.notify_all();
}

/// All that stand at the head and fit beside the holders.
void Store::wake_head(Entry& e, time_point now, Turn& turn) {
    drop_dead(e, now);
    std::uint64_t sum = used(e);
    for (const Waiting& w : e.queue) {
        if (is_dead(w, now)) continue;
        sum += w.units.take;
        if (sum > w.units.of) return;
        turn.wake(*w.events, w.owner);
    }
}

Entry& Store::entry(const std::string& key, time_point now) {
    const auto [at, fresh] = entries_.try_emplace(key);
    if (fresh) at->second.token = forgotten_;
    at->second.used = now;
    return at->second;
}

/// Looks at the next names, and forgets those of which nothing is to be said.
void Store::sweep(time_point now) {
    if (--until_sweep_ != 0) return;
    until_sweep_ = 64;
    auto at = entries_.upper_bound(swept_);
    for (int i = 0; i < 256 && at != entries_.end(); ++i) {
        swept_ = at->first;
        Entry& e = at->second;
        drop_dead(e, now);
        const bool silent = e.holders.empty() && e.queue.empty() && e.gone.empty() &&
                            e.record.empty() && e.last != PreviousHolder::crashed &&
                            e.last != PreviousHolder::abandoned;
        if (silent && now - e.used >= keep_) {
            forgotten_ = std::max(forgotten_, e.token);
            at = entries_.erase(at);
        } else {
            ++at;
        }
    }
    if (at == entries_.end()) swept_.clear();
}

std::size_t Store::size() const {
    const std::lock_guard hold(mutex_);
    return entries_.size();
}

void Store::attempt(spi::Attempt& a, const std::string& key, spi::BackendEvents& events) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    if (now > a.deadline) {
        a.outcome = spi::Attempt::Failed{make_error_code(errc::unavailable)};
        return;
    }
    Entry& e = entry(key, now);
    drop_dead(e, now);
    const auto until = [&](time_point since) {
        return std::max(now + a.ttl + a.lock_delay, since + a.min_hold);
    };
    const auto own = find(e.holders, a.owner);
    if (own != e.holders.end() && !own->revoked && own->valid > now) {
        own->valid = now + a.ttl;
        own->expires = until(own->since);
        a.outcome = spi::Attempt::Granted{own->token, own->told, a.ttl, {}};
        return;
    }
    if (of_another_kind(e, a.units)) {
        leave_line(e, a.owner);
        a.outcome = spi::Attempt::Failed{make_error_code(errc::kind_mismatch)};
        return;
    }
    // Nobody passes a waiter; those ahead that fit as well do not stand in the way.
    std::uint64_t sum = used(e) + a.units.take;
    auto place = e.queue.begin();
    for (; place != e.queue.end() && place->owner != a.owner; ++place)
        if (!is_dead(*place, now)) sum += place->units.take;
    if (sum <= a.units.of && own == e.holders.end()) {
        if (place != e.queue.end()) e.queue.erase(place);
        Holding h;
        h.owner = a.owner;
        h.units = a.units;
        h.told = a.units.permits() ? PreviousHolder::unknown : e.last;
        if (!a.units.permits()) {
            h.token = {++e.token.value};
            if (a.units.exclusive()) e.last = PreviousHolder::crashed;  // until it releases
        }
        h.since = now;
        h.valid = now + a.ttl;
        h.expires = until(now);
        h.events = &events;
        a.outcome = spi::Attempt::Granted{h.token, h.told, a.ttl, {}};
        e.holders.push_back(std::move(h));
        return;
    }
    milliseconds look = longest_look;
    for (const Holding& h : e.holders)
        look = std::min(look, left(h.expires, now) + milliseconds(1));
    if (e.holders.empty()) look = milliseconds(5);
    if (a.queue) {
        const auto alive = now + look * 3 + longest_look;
        if (place != e.queue.end())
            place->alive_until = alive;
        else
            e.queue.push_back({std::string(a.owner), a.units, &events, alive});
    }
    a.outcome = spi::Attempt::Busy{look, false};
}

void Store::withdraw(const spi::Attempt& a, const std::string& key) {
    Turn turn(*this);
    const auto at = entries_.find(key);
    if (at == entries_.end()) return;
    Entry& e = at->second;
    leave_line(e, a.owner);
    if (const auto own = find(e.holders, a.owner); own != e.holders.end()) {
        // It never worked under the lock: what it was told goes to the next.
        if (own->units.exclusive()) e.last = own->told;
        e.holders.erase(own);
    }
    wake_head(e, boot_clock::now(), turn);
}

void Store::renew(spi::Held& h, const std::string& key) {
    Turn turn(*this);
    const auto now = boot_clock::now();
    const auto at = entries_.find(key);
    h.renewal = spi::Held::Renewal::lost;
    h.renewal_error = make_error_code(errc::lost);
    if (at == entries_.end()) return;
    Entry& e = at->second;
    drop_dead(e, now);
    const auto own = find(e.holders, h.owner);
    if (was_broken(e, h.owner)) h.renewal_error = make_error_code(errc::revoked);
    if (own == e.holders.end() || own->valid <= now) return;
    if (own->revoked) {
        h.renewal_error = make_error_code(errc::revoked);
        return;
    }
    own->valid = now + h.ttl;
    own->expires = std::max(own->valid + h.lock_delay, own->since + h.min_hold);
    h.asked = own->asked;
    h.renewal = spi::Held::Renewal::renewed;
    h.renewal_error = {};
    if (h.units == own->units) return;
    own->units = h.units;  // a downgrade
    e.last = PreviousHolder::released;
    wake_head(e, now, turn);
}

void Store::release(spi::Held& h, const std::string& key) {
    Turn turn(*this);
    const auto now = boot_clock::now();
    h.released = ReleaseResult::already_expired;
    const auto at = entries_.find(key);
    if (at == entries_.end()) return;
    Entry& e = at->second;
    const auto own = find(e.holders, h.owner);
    if (own == e.holders.end()) {
        drop_dead(e, now);
        if (!e.holders.empty() || was_broken(e, h.owner))
            h.released = ReleaseResult::owned_by_other;
        return;
    }
    const bool in_time = own->valid > now;
    if (in_time) h.released = ReleaseResult::released;
    if (own->units.exclusive())
        e.last = !in_time                     ? PreviousHolder::crashed
                 : h.outcome == Outcome::done ? PreviousHolder::released
                                              : PreviousHolder::abandoned;
    const auto closed_until = own->since + h.min_hold;
    if (now < closed_until) {
        own->owner.clear();
        own->expires = own->valid = closed_until;
    } else {
        e.holders.erase(own);
    }
    e.used = now;
    wake_head(e, now, turn);
    sweep(now);
}

result<Inspection> Store::inspect(const std::string& key) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    Inspection out;
    const auto at = entries_.find(key);
    if (at == entries_.end()) return out;
    Entry& e = at->second;
    drop_dead(e, now);
    out.last_token = e.token;
    const auto kind = [&](const spi::Units& u) {
        if (u.permits()) out.kind = Kind::semaphore, out.limit = u.of;
        if (u.mode == Mode::shared) out.kind = Kind::shared_mutex;
    };
    for (const Holding& h : e.holders) {
        kind(h.units);
        if (h.owner.empty() || h.valid <= now)
            out.closed_for =
                std::max(out.closed_for.value_or(milliseconds(0)), left(h.expires, now));
        else
            out.holders.push_back(described(h, now));
    }
    for (const Waiting& w : e.queue) {
        if (is_dead(w, now)) continue;
        kind(w.units);
        out.waiters.push_back(described(w.owner, w.units));
    }
    return out;
}

std::vector<std::string> Store::list(const std::string& prefix, std::size_t limit) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    std::vector<std::string> out;
    for (auto at = entries_.lower_bound(prefix);
         at != entries_.end() && out.size() < limit && at->first.starts_with(prefix); ++at) {
        drop_dead(at->second, now);
        if (!at->second.holders.empty()) out.push_back(at->first);
    }
    return out;
}

result<std::vector<Broken>> Store::break_lock(const std::string& key, const BreakOptions& options) {
    Turn turn(*this);
    const auto now = boot_clock::now();
    const auto at = entries_.find(key);
    if (at == entries_.end()) return make_error_code(errc::not_held);
    Entry& e = at->second;
    drop_dead(e, now);
    std::vector<Broken> out;
    for (Holding& h : e.holders) {
        if (!is_meant(h, options.which())) continue;
        h.revoked = true;
        out.push_back({described(h, now), options.now ? milliseconds(0) : left(h.expires, now)});
        if (!options.now) continue;
        e.gone.push_back({h.owner, h.valid});
        if (h.units.exclusive()) e.last = PreviousHolder::crashed;
    }
    if (out.empty()) return make_error_code(errc::not_held);
    if (options.now) {
        std::erase_if(e.holders, [&](const Holding& h) { return is_meant(h, options.which()); });
        wake_head(e, now, turn);
    }
    return out;
}

void Store::record_break(const std::string& key, std::string text) {
    const std::lock_guard hold(mutex_);
    entry(key, boot_clock::now()).record = std::move(text);
}

std::string Store::recorded_break(const std::string& key) {
    const std::lock_guard hold(mutex_);
    const auto at = entries_.find(key);
    return at == entries_.end() ? std::string() : at->second.record;
}

result<std::vector<Holder>> Store::request_release(const std::string& key,
                                                   const HolderFilter& which) {
    Turn turn(*this);
    const auto now = boot_clock::now();
    const auto at = entries_.find(key);
    if (at == entries_.end()) return make_error_code(errc::not_held);
    drop_dead(at->second, now);
    std::vector<Holder> out;
    for (Holding& h : at->second.holders) {
        if (!is_meant(h, which)) continue;
        h.asked = true;
        if (h.events != nullptr) turn.ask(*h.events, h.owner);
        out.push_back(described(h, now));
    }
    if (out.empty()) return make_error_code(errc::not_held);
    return out;
}

void Store::forget(const spi::BackendEvents& events) {
    std::unique_lock hold(mutex_);
    for (auto& [key, e] : entries_) {
        std::erase_if(e.queue, [&](const Waiting& w) { return w.events == &events; });
        for (Holding& h : e.holders)
            if (h.events == &events) h.events = nullptr;
    }
    told_.wait(hold, [&] { return !telling_.contains(&events); });
}

}  // namespace holdfast::memory
