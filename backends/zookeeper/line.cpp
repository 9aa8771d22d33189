#include "line.hpp"

#include "nodes.hpp"

namespace holdfast::zookeeper {

std::int64_t Line::unwrap(std::int32_t sequence) {
    if (!anchor_) anchor_ = sequence;
    const auto low = static_cast<std::uint32_t>(*anchor_);
    const auto distance = static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) - low);
    return *anchor_ + distance;
}

std::optional<std::int64_t> Line::key_of(std::string_view node) {
    const auto sequence = sequence_of(node);
    if (!sequence) return std::nullopt;
    return unwrap(*sequence);
}

Line::Entry* Line::find(std::int64_t key) {
    const auto at = entries_.find(key);
    return at == entries_.end() ? nullptr : &at->second;
}

void Line::add(const PlacePtr& p) {
    p->key = key_of(p->node).value_or(0);
    Entry& e = entries_[p->key];
    e.node = p->node;
    e.own = p;
    // The line moves on; so does what its numbers are measured from.
    anchor_ = p->key;
}

std::vector<PlacePtr> Line::apply(const std::vector<std::string>& children, std::uint64_t number) {
    Entries now;
    for (const std::string& node : children) {
        const auto key = key_of(node);
        if (!key) continue;
        Entry& e = now[*key];
        e.node = node;
        const auto before = entries_.find(*key);
        if (before != entries_.end() && before->second.node == node) e = std::move(before->second);
    }
    std::vector<PlacePtr> vanished;
    for (auto& [key, e] : entries_) {
        if (!e.own || now.contains(key)) continue;
        if (e.own->list <= number)
            vanished.push_back(e.own);
        else
            now[key] = std::move(e);  // made after that list
    }
    entries_ = std::move(now);
    for (auto& [key, e] : entries_)
        if (e.own && e.own->list <= number) e.own->listed = true;
    if (entries_.empty()) anchor_.reset();
    return vanished;
}

Line::Entry* Line::remove(std::int64_t key) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return nullptr;
    const auto next = entries_.erase(at);
    if (entries_.empty()) anchor_.reset();
    return next == entries_.end() ? nullptr : &next->second;
}

void Line::unwatch() noexcept {
    for (auto& [key, e] : entries_)
        e.watched = e.asking = false;
}

bool Line::first(const Place& p) const noexcept {
    return p.listed && !entries_.empty() && entries_.begin()->first == p.key &&
           entries_.begin()->second.own.get() == &p;
}

Line::Entry* Line::ahead(std::int64_t key) {
    const auto at = entries_.lower_bound(key);
    if (at == entries_.begin()) return nullptr;
    return &std::prev(at)->second;
}

}  // namespace holdfast::zookeeper
