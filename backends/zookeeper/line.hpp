// The line for one name, as one session sees it. Pure: lists and removals are passed in.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "call.hpp"
#include "queue_node.hpp"

namespace holdfast::zookeeper {

/// Nodes stand in the order of their numbers, as all clients of the recipe have it. Nodes ahead of
/// one that is there can only vanish, never appear, since the server numbers them in the order of
/// their creation. So after one list that was asked for after a place's node, that place needs no
/// further list: when everything ahead of it has vanished it is the first.
class Line {
public:
    struct Entry {
        std::string node;
        QueueNodePtr own;      ///< of this session, or null
        bool twice = false;    ///< two nodes have this number: nobody knows which is ahead
        bool watched = false;  ///< not for own ones: their end is known here
        bool asking = false;   ///< the watch is asked for
    };
    using Entries = std::map<std::int64_t, Entry>;

    explicit Line(std::string parent) : parent_(std::move(parent)) {}
    const std::string& parent() const noexcept { return parent_; }
    const Entries& entries() const noexcept { return entries_; }
    Entry* find(std::int64_t key);
    bool empty() const noexcept { return entries_.empty(); }
    /// Nothing of this session stands in it, and nothing about it is on its way.
    bool unused() const noexcept { return places == 0 && sent == answered; }

    /// The place's node is known now: it stands in line.
    void add(const QueueNodePtr&);
    /// List number `number` has come. Returns own places that should be in it and are not.
    std::vector<QueueNodePtr> apply(const std::vector<std::string>& children, std::uint64_t number);
    /// A node has vanished; returns the entry that followed it, if any.
    Entry* remove(std::int64_t key);
    static std::optional<std::int64_t> key_of(std::string_view node);
    /// The connection is lost, and its watches with it.
    void unwatch() noexcept;
    /// Nobody is ahead of it.
    bool first(const QueueNode&) const noexcept;
    /// The one just ahead of it; null when it is the first.
    Entry* ahead(std::int64_t key);

    // --- lists of this line, numbered in the order in which they are sent
    std::uint64_t sent = 0, answered = 0;
    bool wanted = false;  ///< another one, when the one under way has come
    boot_clock::time_point last;
    std::size_t places = 0;              ///< own ones that are not gone
    std::vector<QueueNodePtr> doubtful;  ///< the next list says whether their nodes are there

private:
    std::string parent_;
    Entries entries_;
};

}  // namespace holdfast::zookeeper
