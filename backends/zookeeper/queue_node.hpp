// One acquisition's place in a line, from its first request until nothing of it is left at the
// servers.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

class Session;

/// Five small machines that run side by side, and facts that depend on none of them.
///
/// - life: idle - enlisted - creating - queued - granted - withdrawn. A lost answer leads from
///   creating to in_doubt, and what is found there to queued, or back to creating. Each may end as
///   removed, gone or failed, and stays that.
/// - removal: none - wanted - requested; back to wanted, until nothing is left. It may be wanted in
///   any state: a node that is being created, or in doubt, has to be known before it can be
///   removed.
/// - watch: none - asked - set; back to none, with its event or its connection.
/// - access: writes - downgrading - reads; back to writes, where that was refused.
/// - loss: none - lapsed - revoked.
struct QueueNode {
    enum class State : std::uint8_t {
        idle,       ///< nothing was sent
        enlisted,   ///< waits in its session for room for its request
        creating,   ///< its node was requested; this and in_doubt occupy that room
        in_doubt,   ///< the answer was lost: its node may exist
        queued,     ///< its node exists
        granted,    ///< it was first; core holds a lease, or is about to
        withdrawn,  ///< core has given that grant up
        removed,    ///< nothing is left, by its own request
        gone,       ///< nothing is left
        failed,     ///< the server refused its node; nothing is left
    };
    enum class Removal : std::uint8_t {
        none,
        wanted,     ///< nothing of it may stay
        requested,  ///< and the request is under way
    };
    enum class Watch : std::uint8_t { none, asked, set };
    /// Beside other readers: by its name, or after a downgrade.
    enum class Access : std::uint8_t {
        writes,
        downgrading,  ///< the request for it is under way
        reads,
    };
    enum class Loss : std::uint8_t {
        none,
        lapsed,   ///< the lease ended without a release
        revoked,  ///< its node says that it was broken, whatever came before
    };

    // --- what it is
    std::uint64_t serial = 0;  ///< order of arrival among the places of its session
    std::weak_ptr<Session> session;
    std::string owner, name, parent;
    std::string guid;  ///< of this acquisition in this session
    Recipe recipe = Recipe::mutex;
    std::uint32_t permits = 0, limit = 0;  ///< of a semaphore
    std::string name_says;                 ///< permits: the data that the name's own node must have
    std::shared_ptr<QueueNode> turn;       ///< permits: the place in the line for them
    milliseconds ttl{}, lock_delay{};

    // --- where it is
    State state = State::idle;
    Removal removal = Removal::none;
    bool maybe_removed = false;  ///< a request for that was not answered
    Outcome how = Outcome::abandoned;
    Access access = Access::writes;

    // --- its node
    std::string node;               ///< empty until known
    std::vector<std::string> more;  ///< permits: the nodes of all but the first
    std::int32_t number = 0;        ///< the sequence at the end of the node's name
    std::int64_t czxid = 0;
    std::int32_t version = 0;  ///< of its data, as last read or written; -1: not known
    Watch watch = Watch::none;
    boot_clock::time_point watch_asked;  ///< when the last one was
    boot_clock::time_point asked;        ///< when it was first requested
    int tries = 0;                       ///< times that its parent was missing
    std::uint64_t verified_parent = 0;   ///< the watched life of its parent in which it was made

    // --- those beside it
    bool listed = false;     ///< all nodes that may be ahead of it are known
    std::uint64_t list = 0;  ///< the number of that list
    bool waited = false;     ///< another place was ahead of it
    bool strangers = false;  ///< in the last list there were strangers of unknown owners
    /// Its node may not count beside those of the other kind. Permits: until the name has their
    /// limit. Others: the folder of permits existed when this place came into line.
    bool to_agree = false;
    CallPtr own_node, own_line;  ///< permits: the name's own node and line, read afterwards

    // --- its lease
    PreviousHolder previous = PreviousHolder::unknown;
    bool marked = false;      ///< robust: the mark names this grant
    bool mark_doubt = false;  ///< a request for it was not answered; `previous` is as if it was
    Loss loss = Loss::none;
    bool wanted_back = false;  ///< its release was requested
    bool renewed_before = false;
    boot_clock::time_point base;      ///< last reported to core
    boot_clock::time_point answered;  ///< when that was
    boot_clock::time_point expires;   ///< from then on core surely believes in no lease

    // --- what core hears
    bool refused = false;  ///< it may not stand in its line, for the reason in `why`
    error_code why;        ///< of refused, gone and failed
    error_code refusal;    ///< of the last request about its node: a reading, a deletion
    spi::net::Gate gate;   ///< opens on any change

    bool ended() const noexcept {
        return state == State::removed || state == State::gone || state == State::failed;
    }
    bool unsent() const noexcept { return state == State::idle || state == State::enlisted; }
    /// Its node was requested, or is about to be.
    bool entered() const noexcept {
        return state == State::enlisted || asked != boot_clock::time_point();
    }
    bool leaving() const noexcept { return removal != Removal::none; }
    /// Core believes in its lease, as far as is known here.
    bool held() const noexcept { return state == State::granted && !leaving(); }
    bool waits() const noexcept { return state == State::queued && !leaving(); }
    bool reads() const noexcept { return access == Access::reads; }
    bool watched() const noexcept { return watch == Watch::set; }
    bool revoked() const noexcept { return loss == Loss::revoked; }

    void give_up_grant() noexcept {
        if (state == State::granted) state = State::withdrawn;
    }
    void want_removal() noexcept {
        if (removal == Removal::none) removal = Removal::wanted;
    }
    /// It was answered, or never will be.
    void end_removal_request() noexcept {
        if (removal == Removal::requested) removal = Removal::wanted;
    }
    /// The watch has ended. One that is under way will be answered.
    void end_watch() noexcept {
        if (watch == Watch::set) watch = Watch::none;
    }
    void end_downgrade_request() noexcept {
        if (access == Access::downgrading) access = Access::writes;
    }
    void lapse() noexcept {
        if (loss == Loss::none) loss = Loss::lapsed;
    }
    /// Whether that is new.
    bool revoke() noexcept { return std::exchange(loss, Loss::revoked) != Loss::revoked; }

    std::string path() const { return parent + "/" + node; }
    std::vector<std::string> nodes() const {
        std::vector<std::string> all(more);
        all.insert(all.begin(), node);
        return all;
    }
};
using QueueNodePtr = std::shared_ptr<QueueNode>;
/// Of the `place` that core keeps for this backend.
inline QueueNodePtr place_of(const std::shared_ptr<void>& p) {
    return std::static_pointer_cast<QueueNode>(p);
}
inline bool occupies_room(QueueNode::State s) noexcept {
    return s == QueueNode::State::creating || s == QueueNode::State::in_doubt;
}
struct InOrder {
    bool operator()(const QueueNodePtr& a, const QueueNodePtr& b) const noexcept {
        return a->serial < b->serial;
    }
};

}  // namespace holdfast::zookeeper
