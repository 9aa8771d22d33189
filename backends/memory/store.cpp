#include "store.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "holdfast/spi/owner.hpp"

namespace holdfast::memory {
namespace {

constexpr milliseconds longest_look{1000};

milliseconds left(boot_clock::time_point until, boot_clock::time_point now) {
    return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(until - now));
}

Holder describe(const Entry& e, boot_clock::time_point now) {
    const spi::Owner who = spi::parse_owner(e.owner);
    Holder h;
    h.owner = e.owner, h.host = who.host, h.pid = who.pid, h.note = who.note;
    h.token = e.token;
    h.ttl_left = left(e.expires, now);
    h.held_for = std::chrono::floor<milliseconds>(now - e.since);
    h.foreign = !who.ours;
    h.revoked = e.revoked;
    return h;
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

void Store::leave_line(Entry& e, std::string_view owner) {
    std::erase_if(e.queue, [&](const Entry::Waiting& w) { return w.owner == owner; });
}

void Store::drop_dead(Entry& e, boot_clock::time_point now) {
    while (!e.queue.empty() && e.queue.front().alive_until < now)
        e.queue.pop_front();
}

void Store::wake_first(Entry& e, boot_clock::time_point now) {
    drop_dead(e, now);
    if (!e.queue.empty()) e.queue.front().events->wake(e.queue.front().owner);
}

void Store::attempt(spi::Attempt& a, const std::string& key, spi::BackendEvents& events) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    if (now > a.deadline) {
        a.outcome = spi::Attempt::Failed{make_error_code(errc::unavailable)};
        return;
    }
    Entry& e = entries_[key];
    if (e.owner == a.owner && e.expires > now && !e.revoked) {
        e.expires = now + a.ttl;
        a.outcome = spi::Attempt::Granted{e.token, e.told, a.ttl, {}};
        return;
    }
    drop_dead(e, now);
    const bool turn = e.queue.empty() || e.queue.front().owner == a.owner;
    if (e.free(now) && turn) {
        leave_line(e, a.owner);
        const PreviousHolder before = e.owner.empty() ? e.last : PreviousHolder::crashed;
        e.owner = a.owner;
        ++e.token.value;
        e.expires = now + a.ttl;
        e.since = now;
        e.told = before;
        e.revoked = false;
        a.outcome = spi::Attempt::Granted{e.token, before, a.ttl, {}};
        return;
    }
    const milliseconds look = std::min(
        longest_look, e.free(now) ? milliseconds(5) : left(e.expires, now) + milliseconds(1));
    if (a.queue) {
        const auto alive = now + look * 3 + longest_look;
        const auto mine = std::find_if(e.queue.begin(), e.queue.end(),
                                       [&](const auto& w) { return w.owner == a.owner; });
        if (mine != e.queue.end())
            mine->alive_until = alive;
        else
            e.queue.push_back({std::string(a.owner), &events, alive});
    }
    a.outcome = spi::Attempt::Busy{look, false};
}

void Store::withdraw(const spi::Attempt& a, const std::string& key) {
    const std::lock_guard hold(mutex_);
    const auto at = entries_.find(key);
    if (at == entries_.end()) return;
    Entry& e = at->second;
    leave_line(e, a.owner);
    if (e.owner == a.owner) {
        e.owner.clear();
        e.last = e.told;  // it never worked under the lock: its own goes to the next
    }
    if (e.free(boot_clock::now())) wake_first(e, boot_clock::now());
}

void Store::renew(spi::Held& h, const std::string& key) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    const auto at = entries_.find(key);
    h.renewal = spi::Held::Renewal::lost;
    h.renewal_error = make_error_code(errc::lost);
    if (at == entries_.end() || at->second.owner != h.owner || at->second.expires <= now) return;
    if (at->second.revoked) {
        h.renewal_error = make_error_code(errc::revoked);
        return;
    }
    at->second.expires = now + h.ttl;
    h.renewal = spi::Held::Renewal::renewed;
    h.renewal_error = {};
}

void Store::release(spi::Held& h, const std::string& key) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.owner.empty()) {
        h.released = ReleaseResult::already_expired;
        return;
    }
    Entry& e = at->second;
    if (e.owner != h.owner) {
        h.released = e.free(now) ? ReleaseResult::already_expired : ReleaseResult::owned_by_other;
        return;
    }
    h.released = e.expires > now ? ReleaseResult::released : ReleaseResult::already_expired;
    e.owner.clear();
    e.last = h.outcome == Outcome::done ? PreviousHolder::released : PreviousHolder::abandoned;
    wake_first(e, now);
}

result<Inspection> Store::inspect(const std::string& key) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    Inspection out;
    const auto at = entries_.find(key);
    if (at == entries_.end()) return out;
    const Entry& e = at->second;
    out.last_token = e.token;
    if (!e.free(now)) out.holders.push_back(describe(e, now));
    for (const auto& w : e.queue) {
        if (w.alive_until < now) continue;
        const spi::Owner who = spi::parse_owner(w.owner);
        Holder h;
        h.owner = w.owner, h.host = who.host, h.pid = who.pid, h.note = who.note;
        out.waiters.push_back(std::move(h));
    }
    return out;
}

std::vector<std::string> Store::list(const std::string& prefix, std::size_t limit) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    std::vector<std::string> out;
    for (auto at = entries_.lower_bound(prefix);
         at != entries_.end() && out.size() < limit && at->first.starts_with(prefix); ++at)
        if (!at->second.free(now)) out.push_back(at->first);
    return out;
}

result<std::vector<Broken>> Store::break_lock(const std::string& key, const BreakOptions& options) {
    const std::lock_guard hold(mutex_);
    const auto now = boot_clock::now();
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.free(now)) return make_error_code(errc::not_held);
    Entry& e = at->second;
    if (options.if_token && e.token != *options.if_token) return make_error_code(errc::not_held);
    Broken out{describe(e, now), left(e.expires, now)};
    if (options.now) {
        out.free_in = milliseconds(0);
        e.owner.clear();
        e.last = PreviousHolder::abandoned;
        wake_first(e, now);
    } else {
        e.revoked = true;
    }
    return std::vector<Broken>(1, out);
}

void Store::forget(const spi::BackendEvents& events) {
    const std::lock_guard hold(mutex_);
    for (auto& [key, e] : entries_)
        std::erase_if(e.queue, [&](const Entry::Waiting& w) { return w.events == &events; });
}

}  // namespace holdfast::memory
