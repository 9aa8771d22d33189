// The line for one name, as one session sees it. Pure: lists and removals are passed in.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "queue_node.hpp"

namespace holdfast::zookeeper {

/// Nodes stand in the order of their numbers, as all clients of the recipe have it. Nodes ahead of
/// one that is there can only vanish, never appear, since the server numbers them in the order of
/// their creation. So after one list that was asked for after a place's node, that place needs no
/// further list: when everything ahead of it that it waits for has vanished, or has become a
/// reader's, it is let in. tests/models/zookeeper/line.pml
class Line {
public:
    /// The number, and the node: a server may give a number twice, and Curator downgrades with a
    /// reader's node of the writer's number. Nobody knows which of the two is ahead, so both are.
    using Key = std::pair<std::int64_t, std::string>;
    struct Entry {
        QueueNodePtr own;  ///< of this session, or null
        Recipe recipe = Recipe::mutex;
        bool reads = false;    ///< by its name, or by its data: a writer's that was downgraded
        bool watched = false;  ///< not for own ones: their end is known here
        bool asking = false;   ///< the watch is asked for
        bool foreign = false;  ///< by its data, where that was read
    };
    using Entries = std::map<Key, Entry>;

    explicit Line(std::string parent, std::uint32_t limit = 0)
        : parent_(std::move(parent)), limit_(limit) {}
    const std::string& parent() const noexcept { return parent_; }
    const Entries& entries() const noexcept { return entries_; }
    Entry* find(const std::string& node);
    bool empty() const noexcept { return entries_.empty(); }
    /// Nothing of this session stands in it, and nothing about it is on its way.
    bool unused() const noexcept { return places == 0 && sent == answered; }

    /// The place's node is known now: it stands in line.
    void add(const QueueNodePtr&);
    /// List number `number` has come. Returns own places that should be in it and are not.
    std::vector<QueueNodePtr> apply(const std::vector<std::string>& children, std::uint64_t number);
    /// A node has vanished, or its holder reads from now on. Returns own places that may have
    /// waited for it: up to the next that writes.
    std::vector<QueueNodePtr> remove(const std::string& node);
    std::vector<QueueNodePtr> downgrade(const std::string& node);
    /// The connection is lost, and its watches with it.
    void unwatch() noexcept;
    /// Nobody is ahead of it.
    bool first(const QueueNode&) const noexcept;
    /// Nobody is ahead of it whom it has to wait for.
    bool lets_in(const QueueNode&) const;
    /// A line of permits: so many are let in.
    std::uint32_t limit() const noexcept { return limit_; }
    /// The one that it waits for: the one just ahead of it, and for a reader the last that writes;
    /// null when there is none.
    const Entries::value_type* blocker(const QueueNode&) const;

    // --- lists of this line, numbered in the order in which they are sent
    std::uint64_t sent = 0, answered = 0;
    bool wanted = false;  ///< another one, when the one under way has come
    boot_clock::time_point last;
    bool folder = false;                 ///< that of permits is there as well, as last listed
    std::vector<std::string> strangers;  ///< and these: is_stranger
    std::size_t places = 0;              ///< own ones that are not gone
    std::vector<QueueNodePtr> doubtful;  ///< the next list says whether their nodes are there

private:
    std::vector<QueueNodePtr> behind(Entries::const_iterator) const;
    std::string parent_;
    const std::uint32_t limit_;
    Entries entries_;
};

}  // namespace holdfast::zookeeper
