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
    if (at == names_.end()) return Plan::take;
    const Name& n = at->second;
    const bool held = !n.hint && now < n.held_until && n.holder != a.owner;
    const bool fresh = now - n.heard < interval(a.ttl);
    // After a doubt only the server knows.
    if (!a.queue || a.place) return held ? Plan::look : Plan::take;
    const bool first = n.owners.empty() || n.owners.front() == a.owner;
    if (fresh && (held || !first)) return Plan::wait;
    return held ? Plan::look : Plan::take;
}

milliseconds Line::pause(const std::string& key, milliseconds ttl,
                         boot_clock::time_point now) const {
    const auto at = names_.find(key);
    if (at == names_.end()) return milliseconds(1);
    using std::chrono::microseconds;
    const auto left = std::chrono::duration_cast<microseconds>(at->second.held_until - now);
    return look_again(left.count() > 0 ? left.count() : 1'000'000, ttl);
}

void Line::enter(const std::string& key, std::string_view owner) {
    if (!key_of_.try_emplace(std::string(owner), key).second) return;
    names_[key].owners.emplace_back(owner);
    waiting_ = key_of_.size();
}

void Line::leave(std::string_view owner) {
    const auto at = key_of_.find(std::string(owner));
    if (at == key_of_.end()) return;
    const std::string key = std::move(at->second);
    key_of_.erase(at);
    waiting_ = key_of_.size();
    const auto name = names_.find(key);
    if (name == names_.end()) return;
    Name& n = name->second;
    const bool first = n.owners.front() == owner;
    n.owners.erase(std::find(n.owners.begin(), n.owners.end(), owner));
    if (n.owners.empty()) {
        names_.erase(name);
        return;
    }
    // The news was for whoever is first.
    if (first && n.hint && !closed_) context_.sink.wake(n.owners.front());
}

void Line::heard(const Step& s, boot_clock::time_point now) {
    const auto at = names_.find(s.key);
    if (at == names_.end()) return;
    Name& n = at->second;
    if (std::holds_alternative<spi::Attempt::Granted>(s.outcome)) {
        n.holder = s.owner;
        n.held_until = now + s.ttl;
    } else if (std::holds_alternative<spi::Attempt::Busy>(s.outcome)) {
        n.holder = s.holder;
        n.held_until = now + std::chrono::microseconds(s.left_us);
    } else {
        return;
    }
    n.heard = now;
    n.hint = false;
}

void Line::freed(const std::string& key) {
    const auto at = names_.find(key);
    if (at == names_.end() || closed_) return;
    at->second.hint = true;
    at->second.held_until = {};
    context_.sink.wake(at->second.owners.front());
}

void Line::missed_something() {
    std::vector<std::string> keys;
    for (const auto& [key, name] : names_)
        keys.push_back(key);
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
