#include "line.hpp"

#include "nodes.hpp"

namespace holdfast::zookeeper {

std::optional<std::int64_t> Line::key_of(std::string_view node) {
    return sequence_of(node);
}

Line::Entry* Line::find(std::int64_t key) {
    const auto at = entries_.find(key);
    return at == entries_.end() ? nullptr : &at->second;
}

void Line::add(const QueueNodePtr& p) {
    p->key = key_of(p->node).value_or(0);
    Entry& e = entries_[p->key];
    e.twice = !e.node.empty() && e.node != p->node;
    e.node = p->node;
    e.own = p;
}

std::vector<QueueNodePtr> Line::apply(const std::vector<std::string>& children,
                                      std::uint64_t number) {
    Entries now;
    for (const std::string& node : children) {
        const auto key = key_of(node);
        if (!key) continue;
        Entry& e = now[*key];
        const bool twice = !e.node.empty();
        const auto before = entries_.find(*key);
        if (before != entries_.end() && before->second.node == node)
            e = std::move(before->second);
        else if (!twice)
            e.node = node;
        e.twice = twice;
    }
    std::vector<QueueNodePtr> vanished;
    for (auto& [key, e] : entries_) {
        if (!e.own) continue;  // or it is in the list, and was taken over above
        if (e.own->list <= number) {
            vanished.push_back(e.own);
            continue;
        }
        e.twice = now.contains(key);
        now[key] = std::move(e);  // made after that list
    }
    entries_ = std::move(now);
    for (auto& [key, e] : entries_)
        if (e.own && e.own->list <= number) e.own->listed = true;
    return vanished;
}

Line::Entry* Line::remove(std::int64_t key) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return nullptr;
    const auto next = entries_.erase(at);
    return next == entries_.end() ? nullptr : &next->second;
}

void Line::unwatch() noexcept {
    for (auto& [key, e] : entries_)
        e.watched = e.asking = false;
}

bool Line::first(const QueueNode& p) const noexcept {
    if (!p.listed || entries_.empty()) return false;
    const auto& [key, e] = *entries_.begin();
    return key == p.key && e.own.get() == &p && !e.twice;
}

Line::Entry* Line::ahead(std::int64_t key) {
    const auto at = entries_.lower_bound(key);
    if (at == entries_.begin()) return nullptr;
    return &std::prev(at)->second;
}

}  // namespace holdfast::zookeeper
