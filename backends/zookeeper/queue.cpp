#include "queue.hpp"

#include <algorithm>

namespace holdfast::zookeeper {

Queue::Entry* Queue::find(const std::string& node) {
    const auto number = sequence_of(node);
    if (!number) return nullptr;
    const auto at = entries_.find(Key(*number, node));
    return at == entries_.end() ? nullptr : &at->second;
}

void Queue::add(const QueueNodePtr& p) {
    p->number = sequence_of(p->node).value_or(0);
    for (const std::string& node : p->nodes()) {
        Entry& e = entries_[Key(sequence_of(node).value_or(0), node)];
        e.own = p;
        e.recipe = p->recipe;
        e.reads = p->reads();
    }
}

std::vector<QueueNodePtr> Queue::apply(const std::vector<std::string>& children,
                                       std::uint64_t number) {
    Entries now;
    strangers.clear();
    for (const std::string& node : children) {
        const auto rank = rank_of(node);
        // Permits stand in their own folder, and nothing else does.
        if (!rank || (rank->recipe == Recipe::permit) != of_permits_) {
            if (is_stranger(node, of_permits_)) strangers.push_back(node);
            continue;
        }
        Entry& e = now[Key(rank->sequence, node)];
        e.recipe = rank->recipe;
        e.reads = reads(rank->recipe);
        const auto before = entries_.find(Key(rank->sequence, node));
        if (before != entries_.end()) e = std::move(before->second);
    }
    std::vector<QueueNodePtr> vanished;
    for (auto& [key, e] : entries_) {
        if (!e.own) continue;  // or it is in the list, and was taken over above
        if (e.own->list <= number)
            vanished.push_back(e.own);
        else
            now[key] = std::move(e);  // made after that list
    }
    entries_ = std::move(now);
    folder = std::find(children.begin(), children.end(), permits_folder) != children.end();
    for (auto& [key, e] : entries_) {
        if (!e.own || e.own->list > number) continue;
        e.own->strangers = !strangers.empty();
        if (!std::exchange(e.own->listed, true) && !of_permits_) e.own->to_agree = folder;
    }
    return vanished;
}

std::vector<QueueNodePtr> Queue::behind(Entries::const_iterator from) const {
    std::vector<QueueNodePtr> out;
    for (auto at = from; at != entries_.end(); ++at) {
        if (at->second.own) out.push_back(at->second.own);
        if (!at->second.reads) break;
    }
    return out;
}

std::vector<QueueNodePtr> Queue::remove(const std::string& node) {
    const auto number = sequence_of(node);
    const auto at = number ? entries_.find(Key(*number, node)) : entries_.end();
    if (at == entries_.end()) return {};
    return behind(entries_.erase(at));
}

std::vector<QueueNodePtr> Queue::downgrade(const std::string& node) {
    const auto number = sequence_of(node);
    const auto at = number ? entries_.find(Key(*number, node)) : entries_.end();
    if (at == entries_.end() || std::exchange(at->second.reads, true)) return {};
    return behind(std::next(at));
}

void Queue::unwatch() noexcept {
    for (auto& [key, e] : entries_)
        e.watched = e.asking = false;
}

bool Queue::first(const QueueNode& p) const noexcept {
    if (!p.listed || entries_.empty()) return false;
    const auto at = entries_.begin();
    const auto next = std::next(at);
    const bool twice = next != entries_.end() && next->first.first == at->first.first;
    return at->second.own.get() == &p && !twice;
}

bool Queue::lets_in(const QueueNode& p) const {
    if (!p.listed) return false;
    if (of_permits_) {
        const std::string& own = p.more.empty() ? p.node : p.more.back();
        const auto at = entries_.find(Key(sequence_of(own).value_or(0), own));
        return at != entries_.end() &&
               std::distance(entries_.begin(), at) < static_cast<std::ptrdiff_t>(p.limit);
    }
    const auto at = entries_.find(Key(p.number, p.node));
    return at != entries_.end() && at->second.own.get() == &p && blocker(p) == nullptr;
}

const Queue::Entries::value_type* Queue::blocker(const QueueNode& p) const {
    for (auto at = entries_.lower_bound(Key(p.number + std::int64_t{1}, {}));
         at != entries_.begin();) {
        --at;
        if (at->second.own.get() != &p && (!p.reads() || !at->second.reads)) return &*at;
    }
    return nullptr;
}

}  // namespace holdfast::zookeeper
