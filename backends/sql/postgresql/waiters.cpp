#include "waiters.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "holdfast/spi/bounded_time.hpp"

namespace holdfast::postgresql {

boot_clock::duration Waiters::interval(milliseconds ttl) noexcept {
    // A little less than core's pause, so that a look that comes on time is not put off again.
    return spi::Attempt::Busy::unnotified(ttl) * 3 / 4;
}

Waiters::Plan Waiters::plan(const std::string& key, const spi::Attempt& a,
                            boot_clock::time_point now) const {
    const auto* n = in_line_.find(key);
    const bool doubt = sql::OwnerState::of(a.place).touched;
    const bool polite = a.queue && !doubt && now < left_alone_until(key);
    if (n == nullptr) return !polite ? Plan::take : hearing_ ? Plan::stand : Plan::wait;
    if (polite && !n->hint && !n->placed && hearing_) return Plan::stand;
    const bool held = !n->hint && n->held_by_another(a.owner, now);
    const bool fresh = now - n->heard < interval(a.ttl);
    // After a doubt only the server knows.
    if (!a.queue || doubt) return held ? Plan::look : Plan::take;
    const bool first = n->first() == a.owner;
    const bool will_hear = n->placed || !hearing_;
    if (fresh && (!first || (held && will_hear))) return Plan::wait;
    return held ? Plan::look : Plan::take;
}

void Waiters::place(Step& s, boot_clock::time_point now, const Shared& shared) const {
    const auto* n = in_line_.find(s.key);
    if (hearing_) s.since = shared.server_us(now);
    if (n == nullptr) return;
    s.next = 0;
    for (const auto& w : n->line) {
        if (w.owner == s.owner)
            s.since = hearing_ ? shared.server_us(w.since) : 0;
        else if (hearing_ && s.next == 0)
            s.next = shared.server_us(w.since);
    }
}

milliseconds Waiters::pause(const std::string& key, milliseconds ttl,
                            boot_clock::time_point now) const {
    using std::chrono::microseconds;
    const auto alone = left_alone_until(key) - now;
    if (alone > boot_clock::duration::zero()) return std::chrono::ceil<milliseconds>(alone);
    const auto* n = in_line_.find(key);
    if (n == nullptr) return milliseconds(1);
    const auto left = std::chrono::duration_cast<microseconds>(n->held_until - now);
    return sql::look_within(left.count() > 0 ? left.count() : 1'000'000, ttl);
}

void Waiters::enter(const std::string& key, std::string_view owner, boot_clock::time_point came) {
    if (beside_of_.contains(std::string(owner))) return;
    const auto* n = in_line_.enter(key, owner, came);
    if (n == nullptr) return;
    count();
    // The notification was for the one that it stands before.
    if (n->first() == owner && n->hint && !closed_) context_.events.wake(owner);
}

void Waiters::enter_beside(const std::string& key, std::string_view owner) {
    if (!beside_of_.try_emplace(std::string(owner), key).second) return;
    beside_[key].insert(std::string(owner));
    count();
}

bool Waiters::leave(std::string_view owner) {
    if (const auto beside = beside_of_.extract(std::string(owner))) {
        count();
        const auto others = beside_.find(beside.mapped());
        others->second.erase(beside.key());
        if (!others->second.empty()) return false;
        beside_.erase(others);
        return in_line_.find(beside.mapped()) == nullptr;
    }
    const auto left = in_line_.leave(owner);
    if (!left) return false;
    count();
    if (left->last) return (left->last->placed || left->last->hint) && !beside_.contains(left->key);
    // The notification was for the first waiter, and so is asking for a place.
    const auto& n = *in_line_.find(left->key);
    const bool something_to_do = n.hint || (hearing_ && !n.placed);
    if (left->first && something_to_do && !closed_) context_.events.wake(n.first());
    return false;
}

void Waiters::heard(const Step& s, boot_clock::time_point asked, boot_clock::time_point now) {
    auto* const name = in_line_.find(s.key);
    if (name == nullptr) return;
    auto& n = *name;
    if (std::holds_alternative<spi::Attempt::Granted>(s.outcome)) {
        n.holder = s.owner;
        n.held_until = now + s.ttl;
    } else if (std::holds_alternative<spi::Attempt::Busy>(s.outcome)) {
        // Told while that answer was on its way: it is from before.
        if (n.hint && n.told > asked) return;
        n.holder = s.holder;
        n.held_until = now + spi::bounded_length<std::chrono::microseconds>(s.left_us);
    } else {
        return;
    }
    n.heard = now;
    n.hint = false;
    n.placed = s.placed;
}

bool Waiters::freed(const std::string& key) {
    if (closed_) return true;
    left_alone_.erase(key);
    const auto others = beside_.find(key);
    if (others != beside_.end())
        for (const std::string& owner : others->second)
            context_.events.wake(owner);
    auto* const n = in_line_.find(key);
    if (n == nullptr) return others != beside_.end();
    n->hint = true;
    n->told = boot_clock::now();
    n->placed = false;  // a notified client is out of the line
    n->held_until = {};
    context_.events.wake(n->first());
    return true;
}

boot_clock::time_point Waiters::left_alone_until(const std::string& key) const {
    const auto at = left_alone_.find(key);
    return at == left_alone_.end() ? boot_clock::time_point() : at->second;
}

void Waiters::handed_on(const std::string& key) {
    const auto now = boot_clock::now();
    std::erase_if(left_alone_, [&](const auto& one) { return one.second <= now; });
    left_alone_.insert_or_assign(key, now + courtesy);
}

void Waiters::handed_on_elsewhere(const std::string& key) {
    boost::asio::post(context_.engine, [weak = weak_from_this(), key] {
        if (const auto alive = weak.lock()) alive->handed_on(key);
    });
}

void Waiters::hearing(bool can) {
    hearing_ = can;
    std::vector<std::string> keys;
    for (const auto& [key, name] : in_line_)
        keys.push_back(key);
    for (const auto& [key, owners] : beside_)
        if (in_line_.find(key) == nullptr) keys.push_back(key);
    for (const std::string& key : keys)
        freed(key);
}

void Waiters::freed_elsewhere(const std::string& key) {
    if (waiting_ == 0) return;
    boost::asio::post(context_.engine, [weak = weak_from_this(), key] {
        if (const auto alive = weak.lock()) alive->freed(key);
    });
}

}  // namespace holdfast::postgresql
