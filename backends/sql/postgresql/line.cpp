#include "line.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

namespace holdfast::postgresql {

boot_clock::duration Line::interval(milliseconds ttl) noexcept {
    // A little less than core's pause, so that a look that comes on time is not put off again.
    return std::min(ttl / 3, milliseconds(1000)) * 3 / 4;
}

Line::Plan Line::plan(const std::string& key, const spi::Attempt& a,
                      boot_clock::time_point now) const {
    const auto at = names_.find(key);
    const bool doubt = Place::of(a.place).touched;
    const bool polite = a.queue && !doubt && now < left_alone_until(key);
    if (at == names_.end()) return !polite ? Plan::take : hearing_ ? Plan::stand : Plan::wait;
    const Name& n = at->second;
    if (polite && !n.hint && !n.placed && hearing_) return Plan::stand;
    const bool held = !n.hint && now < n.held_until && n.holder != a.owner;
    const bool fresh = now - n.heard < interval(a.ttl);
    // After a doubt only the server knows.
    if (!a.queue || doubt) return held ? Plan::look : Plan::take;
    const bool first = n.waiters.front().owner == a.owner;
    const bool will_hear = n.placed || !hearing_;
    if (fresh && (!first || (held && will_hear))) return Plan::wait;
    return held ? Plan::look : Plan::take;
}

void Line::place(Step& s, boot_clock::time_point now, const Shared& shared) const {
    const auto at = names_.find(s.key);
    if (hearing_) s.since = shared.server_us(now);
    if (at == names_.end()) return;
    s.next = 0;
    for (const Waiter& w : at->second.waiters) {
        if (w.owner == s.owner)
            s.since = hearing_ ? shared.server_us(w.since) : 0;
        else if (hearing_ && s.next == 0)
            s.next = shared.server_us(w.since);
    }
}

milliseconds Line::pause(const std::string& key, milliseconds ttl,
                         boot_clock::time_point now) const {
    using std::chrono::microseconds;
    const auto alone = left_alone_until(key) - now;
    if (alone > boot_clock::duration::zero()) return std::chrono::ceil<milliseconds>(alone);
    const auto at = names_.find(key);
    if (at == names_.end()) return milliseconds(1);
    const auto left = std::chrono::duration_cast<microseconds>(at->second.held_until - now);
    return look_within(left.count() > 0 ? left.count() : 1'000'000, ttl);
}

void Line::enter(const std::string& key, std::string_view owner, boot_clock::time_point came) {
    if (!key_of_.try_emplace(std::string(owner), key).second) return;
    Name& n = names_[key];
    const auto at = std::upper_bound(n.waiters.begin(), n.waiters.end(), came,
                                     [](auto time, const Waiter& w) { return time < w.since; });
    const bool first = at == n.waiters.begin();
    n.waiters.insert(at, {std::string(owner), came});
    waiting_ = key_of_.size();
    // The notification was for the one that it stands before.
    if (first && n.hint && !closed_) context_.events.wake(owner);
}

void Line::enter_beside(const std::string& key, std::string_view owner) {
    if (!key_of_.try_emplace(std::string(owner), key).second) return;
    beside_[key].insert(std::string(owner));
    waiting_ = key_of_.size();
}

bool Line::leave(std::string_view owner) {
    const auto at = key_of_.find(std::string(owner));
    if (at == key_of_.end()) return false;
    const std::string key = std::move(at->second);
    key_of_.erase(at);
    waiting_ = key_of_.size();
    const auto name = names_.find(key);
    if (const auto others = beside_.find(key); others != beside_.end()) {
        const bool was_one = others->second.erase(std::string(owner)) != 0;
        const bool last = others->second.empty();
        if (last) beside_.erase(others);
        if (was_one) return last && name == names_.end();
    }
    if (name == names_.end()) return false;
    Name& n = name->second;
    const bool first = n.waiters.front().owner == owner;
    std::erase_if(n.waiters, [&](const Waiter& w) { return w.owner == owner; });
    if (n.waiters.empty()) {
        const bool known_there = n.placed || n.hint;
        names_.erase(name);
        return known_there && !beside_.contains(key);
    }
    // The notification was for the first waiter, and so is asking for a place.
    const bool something_to_do = n.hint || (hearing_ && !n.placed);
    if (first && something_to_do && !closed_) context_.events.wake(n.waiters.front().owner);
    return false;
}

void Line::heard(const Step& s, boot_clock::time_point asked, boot_clock::time_point now) {
    const auto at = names_.find(s.key);
    if (at == names_.end()) return;
    Name& n = at->second;
    if (std::holds_alternative<spi::Attempt::Granted>(s.outcome)) {
        n.holder = s.owner;
        n.held_until = now + s.ttl;
    } else if (std::holds_alternative<spi::Attempt::Busy>(s.outcome)) {
        // Told while that answer was on its way: it is from before.
        if (n.hint && n.told > asked) return;
        n.holder = s.holder;
        n.held_until = now + std::chrono::microseconds(s.left_us);
    } else {
        return;
    }
    n.heard = now;
    n.hint = false;
    n.placed = s.placed;
}

bool Line::freed(const std::string& key) {
    if (closed_) return true;
    left_alone_.erase(key);
    const auto others = beside_.find(key);
    if (others != beside_.end())
        for (const std::string& owner : others->second)
            context_.events.wake(owner);
    const auto at = names_.find(key);
    if (at == names_.end()) return others != beside_.end();
    Name& n = at->second;
    n.hint = true;
    n.told = boot_clock::now();
    n.placed = false;  // a notified client is out of the line
    n.held_until = {};
    context_.events.wake(n.waiters.front().owner);
    return true;
}

boot_clock::time_point Line::left_alone_until(const std::string& key) const {
    const auto at = left_alone_.find(key);
    return at == left_alone_.end() ? boot_clock::time_point() : at->second;
}

void Line::handed_on(const std::string& key) {
    const auto now = boot_clock::now();
    std::erase_if(left_alone_, [&](const auto& one) { return one.second <= now; });
    left_alone_.insert_or_assign(key, now + courtesy);
}

void Line::handed_on_elsewhere(const std::string& key) {
    boost::asio::post(context_.engine, [weak = weak_from_this(), key] {
        if (const auto line = weak.lock()) line->handed_on(key);
    });
}

void Line::hearing(bool can) {
    hearing_ = can;
    std::vector<std::string> keys;
    for (const auto& [key, name] : names_)
        keys.push_back(key);
    for (const auto& [key, owners] : beside_)
        if (!names_.contains(key)) keys.push_back(key);
    for (const std::string& key : keys)
        freed(key);
}

void Line::freed_elsewhere(const std::string& key) {
    if (waiting_ == 0) return;
    boost::asio::post(context_.engine, [weak = weak_from_this(), key] {
        if (const auto line = weak.lock()) line->freed(key);
    });
}

}  // namespace holdfast::postgresql
