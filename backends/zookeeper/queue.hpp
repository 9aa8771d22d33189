// The line of one name, as one session sees it. Pure: lists and removals are passed in.
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

/// Nodes stand in the order of their numbers, as in all clients of the recipe. The server numbers
/// them in the order of their creation, so nodes ahead of an existing one can only vanish, never
/// appear, but for the reader's node in the writer's place by which Curator downgrades. So a place
/// needs no list after one that was requested when its node existed, unless a writer of Curator's
/// has vanished: it is let in when everything ahead that it waits for has vanished or become a
/// reader's.
/// tests/models/zookeeper/line.pml
class Queue {
public:
    /// The number and the node. A server may give a number twice, and Curator's downgrade has two
    /// nodes in one place for a while. No client knows which of the two is ahead, so each counts as
    /// ahead of the other.
    using Key = std::pair<std::int64_t, std::string>;
    struct Entry {
        QueueNodePtr own;  ///< of this session, or null
        Recipe recipe = Recipe::mutex;
        bool reads = false;           ///< by its name, or by its data after a downgrade
        bool watched = false;         ///< not used for own nodes, whose end is known here
        bool asking = false;          ///< the watch was requested
        std::optional<bool> foreign;  ///< according to its data, if that was read
        /// Curator's writer, or it is not known whose: when it vanishes there may be a reader in
        /// its place.
        bool may_leave_reader() const noexcept {
            return !own && recipe == Recipe::writer && foreign.value_or(true);
        }
    };
    using Entries = std::map<Key, Entry>;

    explicit Queue(std::string parent, bool of_permits = false)
        : parent_(std::move(parent)), of_permits_(of_permits) {}
    const std::string& parent() const noexcept { return parent_; }
    const Entries& entries() const noexcept { return entries_; }
    Entry* find(const std::string& node);
    bool empty() const noexcept { return entries_.empty(); }
    /// No place of this session is in it, and no list of it is under way.
    bool unused() const noexcept { return places == 0 && sent == answered; }

    /// Adds a place whose node is now known.
    void add(const QueueNodePtr&);
    /// Applies list number `number`. Returns own places that should be in it and are not.
    std::vector<QueueNodePtr> apply(const std::vector<std::string>& children, std::uint64_t number);
    /// A node has vanished, or its holder reads from now on. Returns own places that may have
    /// waited for it: up to the next writer.
    std::vector<QueueNodePtr> remove(const std::string& node);
    std::vector<QueueNodePtr> downgrade(const std::string& node);
    /// The connection is lost, and its watches with it.
    void unwatch() noexcept;
    /// Nothing is ahead of it.
    bool first(const QueueNode&) const noexcept;
    /// Nothing is ahead of it that it has to wait for.
    bool lets_in(const QueueNode&) const;
    /// Each place in a line of permits has a limit of its own: the first so many are let in.
    bool of_permits() const noexcept { return of_permits_; }
    /// The node that it waits for: the one just ahead of it, or, for a reader, the last writer
    /// ahead; null when there is none.
    const Entries::value_type* blocker(const QueueNode&) const;

    // --- lists of this line, numbered in the order in which they are sent
    std::uint64_t sent = 0, answered = 0;
    bool wanted = false;  ///< send another when the one under way has come
    boot_clock::time_point last;
    bool folder = false;                 ///< the folder of permits was in the last list
    std::vector<std::string> strangers;  ///< nodes in the last list for which is_stranger holds
    std::size_t places = 0;              ///< own places that are not gone
    std::vector<QueueNodePtr> doubtful;  ///< the next list says whether their nodes exist

private:
    std::vector<QueueNodePtr> behind(Entries::const_iterator) const;
    std::string parent_;
    const bool of_permits_;
    Entries entries_;
};

}  // namespace holdfast::zookeeper
