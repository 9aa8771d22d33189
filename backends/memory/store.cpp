#include "store.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace holdfast::memory {
namespace {

using spi::NameState;

NameState::Time in_us(boot_clock::time_point t) {
    return std::chrono::floor<std::chrono::microseconds>(t.time_since_epoch()).count();
}

NameState::Time now_us() {
    return in_us(boot_clock::now());
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
    for (const News& n : news_)
        (n.events->*n.tell)(n.text);
    hold_.lock();
    for (const News& n : news_)
        store_.telling_.erase(store_.telling_.find(n.events));
    store_.told_.notify_all();
}

void Store::Turn::add(Entry& e, std::string_view owner, Tell tell) {
    if (const Entry::Client* c = e.client(owner)) news_.push_back({c->events, c->owner, tell});
}

void Store::Turn::wake(Entry& e) {
    for (const std::string_view owner : e.state.admissible())
        add(e, owner, &spi::BackendEvents::wake);
}

void Store::Turn::ask(Entry& e, std::string_view owner) {
    add(e, owner, &spi::BackendEvents::asked);
}

void Store::Turn::change(const std::string& key) {
    const auto [from, to] = store_.watchers_.equal_range(key);
    for (auto at = from; at != to; ++at)
        news_.push_back({at->second.events, at->second.name, &spi::BackendEvents::changed});
}

Entry* Store::find(const std::string& key) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return nullptr;
    at->second.state.expire(now_us());
    return &at->second;
}

Entry& Store::entry(const std::string& key, NameState::Time now) {
    const auto [at, fresh] = entries_.try_emplace(key);
    Entry& e = at->second;
    if (fresh) {
        e.state.token = forgotten_;
        e.state.place_after = 0;
    }
    e.state.expire(now);
    e.used = now;
    return e;
}

/// Looks at the next names, and forgets those of which nothing is to be said.
void Store::sweep(NameState::Time now) {
    if (--until_sweep_ != 0) return;
    until_sweep_ = 64;
    auto at = entries_.upper_bound(swept_);
    for (int i = 0; i < 256 && at != entries_.end(); ++i) {
        swept_ = at->first;
        const Entry& e = at->second;
        NameState& state = at->second.state;
        state.expire(now);
        const bool silent = state.holders.empty() && state.waiters.empty() &&
                            state.broken.empty() && !state.ended && e.record.empty() &&
                            state.previous != PreviousHolder::crashed &&
                            state.previous != PreviousHolder::abandoned;
        if (silent && now - e.used >= spi::to_us(keep_)) {
            forgotten_ = std::max(forgotten_, state.token);
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
    Turn turn(*this);
    const auto now = boot_clock::now();
    if (now > a.deadline) {
        a.outcome = spi::Attempt::Failed{make_error_code(errc::unavailable)};
        return;
    }
    Entry& e = entry(key, in_us(now));
    auto request = NameState::Request::of(a);
    // A waiter keeps the ticket of its first attempt; no two are alike.
    if (!a.place) last_ticket_ = std::max(last_ticket_ + 1, e.state.now);
    request.ticket = a.place ? *static_cast<const NameState::Time*>(a.place.get()) : last_ticket_;
    if (a.queue && !a.place) a.place = std::make_shared<NameState::Time>(last_ticket_);
    const NameState::Attempted made = e.state.attempt(request);
    using enum NameState::Attempted::Kind;
    switch (made.kind) {
        case granted:
            a.outcome = spi::Attempt::Granted{
                {static_cast<std::uint64_t>(made.token)}, made.previous, a.ttl, {}};
            turn.change(key);
            break;
        case of_another_kind:
            a.detail = NameState::other_kind;
            a.outcome = spi::Attempt::Failed{make_error_code(errc::kind_mismatch)};
            break;
        case busy:
            a.outcome = spi::Attempt::Busy{NameState::poll_within(e.state.next_end()), false};
            break;
    }
    if ((made.kind == granted || made.placed) && e.client(a.owner) == nullptr)
        e.clients.push_back({std::string(a.owner), &events});
}

void Store::withdraw(const spi::Attempt& a, const std::string& key) {
    Turn turn(*this);
    Entry* e = find(key);
    if (e == nullptr) return;
    const bool freed = e->state.withdraw(a.owner);
    e->leave(a.owner);
    if (!freed) return;
    turn.wake(*e);
    turn.change(key);
}

void Store::renew(spi::Held& h, const std::string& key) {
    Turn turn(*this);
    h.renewal = spi::Held::Renewal::lost;
    h.renewal_error = make_error_code(errc::lost);
    Entry* e = find(key);
    if (e == nullptr) return;
    const NameState::Renewed made = e->state.renew(NameState::Request::of(h));
    h.renewal_error = made.why;
    if (made.why) return e->leave(h.owner);
    h.renewal = spi::Held::Renewal::renewed;
    h.asked = made.asked;
    if (made.freed) turn.wake(*e);
}

void Store::release(spi::Held& h, const std::string& key) {
    Turn turn(*this);
    h.released = ReleaseResult::already_expired;
    Entry* e = find(key);
    if (e == nullptr) return;
    const NameState::Released made = e->state.release(NameState::Request::of(h));
    h.released = made.result;
    e->leave(h.owner);
    e->used = e->state.now;
    if (made.freed) turn.wake(*e);
    turn.change(key);
    sweep(e->state.now);
}

spi::Survey Store::survey(const std::string& key) {
    const std::lock_guard hold(mutex_);
    const Entry* e = find(key);
    return e == nullptr ? spi::Survey() : e->state.survey();
}

std::vector<std::string> Store::list(const std::string& prefix, std::size_t limit) {
    const std::lock_guard hold(mutex_);
    std::vector<std::string> out;
    for (auto at = entries_.lower_bound(prefix);
         at != entries_.end() && out.size() < limit && at->first.starts_with(prefix); ++at) {
        at->second.state.expire(now_us());
        if (!at->second.state.holders.empty()) out.push_back(at->first);
    }
    return out;
}

spi::Answer<spi::Survey> Store::tell(const std::string& key, const HolderFilter& which,
                                     spi::Tell what) {
    Turn turn(*this);
    Entry* e = find(key);
    if (e == nullptr) return spi::Failure(errc::not_held);
    auto reached = e->state.tell(which, what);
    if (!reached) return reached;
    if (what == spi::Tell::asked) {
        for (const spi::Survey::Member& m : reached->holders)
            turn.ask(*e, m.holder.owner);
    } else {
        turn.wake(*e);
        turn.change(key);
    }
    return reached;
}

std::string Store::note(const std::string& key, std::optional<std::string> text) {
    const std::lock_guard hold(mutex_);
    if (text) return entry(key, now_us()).record = std::move(*text);
    const auto at = entries_.find(key);
    return at == entries_.end() ? std::string() : at->second.record;
}

void Store::watch(const std::string& key, const Watcher& watcher, bool on) {
    const std::lock_guard hold(mutex_);
    if (on) {
        watchers_.emplace(key, watcher);
        return;
    }
    const auto [from, to] = watchers_.equal_range(key);
    const auto at =
        std::find_if(from, to, [&](const auto& w) { return w.second.events == watcher.events; });
    if (at != to) watchers_.erase(at);
}

void Store::forget(const spi::BackendEvents& events) {
    std::unique_lock hold(mutex_);
    std::erase_if(watchers_, [&](const auto& w) { return w.second.events == &events; });
    for (auto& [key, entry] : entries_) {
        Entry& e = entry;
        std::erase_if(e.state.waiters, [&](const NameState::Waiter& w) {
            const Entry::Client* c = e.client(w.owner);
            return c != nullptr && c->events == &events;
        });
        std::erase_if(e.clients, [&](const Entry::Client& c) { return c.events == &events; });
    }
    told_.wait(hold, [&] { return !telling_.contains(&events); });
}

}  // namespace holdfast::memory
