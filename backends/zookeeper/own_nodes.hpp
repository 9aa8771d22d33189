// The places of a session: how their nodes are made, watched and removed.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "queue.hpp"
#include "session_part.hpp"
#include "verified_parent.hpp"

namespace holdfast::zookeeper {

class QueueView;

/// creation.cpp makes nodes, doubts.cpp finds those whose answer was lost, own_nodes.cpp has what
/// becomes of them.
class OwnNodes : public SessionPart {
public:
    using SessionPart::SessionPart;

    QueueNodePtr make_place(const spi::Attempt&);
    /// Requests its node once there is a connection and room. Only as many are requested at a time
    /// as can be answered in time; the others wait here.
    void enter(const QueueNodePtr&);
    /// When a node was last requested.
    boot_clock::time_point asked_last() const noexcept { return asked_last_; }
    /// Deletes its node, now or as soon as possible, so that nothing of it stays.
    void leave(const QueueNodePtr&, Outcome);
    /// It may not stand in its line.
    void refuse(const QueueNodePtr&, error_code why);
    /// Reads its own node, and watches it.
    void watch(const QueueNodePtr&);
    /// For permits: requests the limit, and the line at the name itself.
    void read_name(QueueNode&);
    /// From writer to reader, in its own node and its own place. Opens Shared::beats on the answer.
    void downgrade(const QueueNodePtr&);

    // --- for the session and its other parts
    bool none() const noexcept { return places_.empty(); }
    bool contains(const QueueNodePtr& p) const { return places_.contains(p); }
    const std::set<QueueNodePtr, InOrder>& all() const noexcept { return places_; }
    /// Core believes in a lease.
    bool any_held() const;
    /// Why a parent was not made, if the servers refused that lately.
    error_code no_parent() const noexcept { return no_parent_; }
    void create_base();
    void end_place(const QueueNodePtr&, QueueNode::State, error_code);
    /// Its node is not there any more: core hears of it.
    void lose_place(const QueueNodePtr&, error_code why);
    void resolve_doubts(Queue&, std::uint64_t number, const std::vector<std::string>& children);
    /// Permits beyond the first are deleted one by one.
    void forget_permits(QueueNode&);
    /// What the watch of its node notifies of.
    void changed(const QueueNodePtr&, bool deleted);
    /// False: no parent of places.
    bool parent_changed(const std::string& path, bool deleted);
    void connected();
    void disconnected();
    /// Places whose leases are over leave.
    void expire(boot_clock::time_point now);
    /// Whatever could not be removed is tried again.
    void repeat(boot_clock::time_point now);
    /// Waiters leave, to stand in line again in a new session.
    void give_up_waiting();
    void end_all(error_code);

private:
    QueueView& queues() const;

    // --- creation.cpp
    void create_parent(const std::string& path, std::string_view data, Handle::Kind,
                       Handle::Then = {});
    /// Why a node below it was not made: ZNONODE says no more than that a parent is missing.
    error_code why_not_made(int rc) const;
    void create_parents(const QueueNode&);
    void watch_parent(const std::string& parent);
    void create_node(const QueueNodePtr&);
    /// With `foreseen` it was requested without a list: it is expected to be the first.
    void created(const QueueNodePtr&, bool foreseen, Call&);
    /// Its node exists. False: another node may have the same number, so it is removed again.
    bool stands(const QueueNodePtr&, std::string node, std::int64_t czxid);
    void find_rank(const QueueNodePtr&, bool foreseen);
    void note_clear(const QueueNode&);
    /// Requests the nodes of those that wait, as far as there is room.
    void let_in();
    void give_room();
    std::string data_of(const QueueNode&, bool reading) const;

    // --- doubts.cpp
    /// Requests the list that says whether its node exists.
    void find_node(const QueueNodePtr&);
    void resolve(const QueueNodePtr&, std::vector<const std::string*> nodes);
    void adopt(const QueueNodePtr&, const std::string& node);
    void create_again(const QueueNodePtr&);
    void sweep_orphans(boot_clock::time_point now);
    void remove_orphan(const std::string& parent, const std::string& node);

    // --- own_nodes.cpp
    void remove_node(const QueueNodePtr&);
    /// Whether there is a mark of its own, which goes with its node.
    void find_mark(const QueueNodePtr&);
    void removed(const QueueNodePtr&, int rc, bool with_mark, bool several);
    void seen(const QueueNodePtr&, Call&);
    void restore(const QueueNode&);
    void downgraded(const QueueNodePtr&);

    std::set<QueueNodePtr, InOrder> places_;  ///< in order of arrival, also after an outage
    std::uint64_t last_serial_ = 0;
    std::set<QueueNodePtr, InOrder> entering_;  ///< those that are enlisted
    std::size_t asking_ = 0;
    std::size_t reading_ = 0;  ///< own nodes: requests that were not answered yet
    boot_clock::time_point asked_last_;
    bool has_containers_ = true;
    std::unordered_map<std::string, VerifiedParent> known_parents_;
    std::uint64_t lives_ = 0;
    error_code no_parent_;
    /// To be deleted, with a heartbeat, until the servers say that it is gone. Without a node:
    /// whatever has that guid, whose request may still arrive by another connection.
    struct OrphanNode {
        std::string parent, guid, node;
        boot_clock::time_point due;
    };
    std::vector<OrphanNode> orphans_;
};

}  // namespace holdfast::zookeeper
