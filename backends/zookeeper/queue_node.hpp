// One acquisition's place in a line, from its first request until nothing of it is left at the
// servers.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "call.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

class Session;

struct QueueNode {
    enum class State : std::uint8_t {
        idle,      ///< nothing was sent
        creating,  ///< its node was requested, or may exist after a lost answer
        queued,    ///< its node exists
        granted,   ///< it was first; core holds a lease, or is about to
        gone,      ///< nothing is left
        failed,    ///< the server refused; nothing is left
    };
    State state = State::idle;
    std::uint64_t serial = 0;  ///< order of arrival among the places of its session
    std::weak_ptr<Session> session;
    std::string owner, name, parent;
    std::string guid;  ///< of this acquisition in this session
    Recipe recipe = Recipe::mutex;
    bool reads = false;       ///< beside other readers: by its name, or after a downgrade
    std::string node;         ///< empty until known
    std::int32_t number = 0;  ///< the sequence at the end of the node's name
    std::uint32_t permits = 0, limit = 0;  ///< of a semaphore
    std::string name_says;                 ///< permits: the data that the name's own node must have
    bool agreed = false;                   ///< and has had since this place's nodes exist
    std::vector<std::string> more;         ///< permits: the nodes of all but the first
    std::shared_ptr<QueueNode> turn;       ///< permits: the place in the line for them
    CallPtr own_node, own_line;  ///< permits: the name's own node and line, read afterwards
    bool folder = false;         ///< the folder of permits existed when this place came into line
    bool strangers = false;      ///< in the last list there were strangers of unknown owners
    std::int64_t czxid = 0;
    std::int32_t version = 0;  ///< of its data, as last read or written; -1: not known
    milliseconds ttl{}, lock_delay{};

    bool enlisted = false;         ///< waits in its session for room for its request
    bool asking = false;           ///< occupies that room
    boot_clock::time_point asked;  ///< when its node was first requested

    bool foreseen = false;  ///< requested without a list: it is expected to be the first
    std::uint64_t verified_parent =
        0;                   ///< the watched life of its parent in which its node was made
    bool waited = false;     ///< another place was ahead of it
    bool listed = false;     ///< all nodes that may be ahead of it are known
    std::uint64_t list = 0;  ///< the number of that list
    bool in_doubt = false;   ///< the answer about its node was lost
    int tries = 0;           ///< times that its parent was missing

    bool refused = false;   ///< its line may not be read
    bool leaving = false;   ///< nothing of it may stay
    bool removing = false;  ///< the request for its removal is under way
    bool maybe_removed = false, was_removed = false;
    Outcome how = Outcome::abandoned;

    bool told = false;    ///< core has received a grant
    bool marked = false;  ///< robust: the mark names this grant
    PreviousHolder previous = PreviousHolder::unknown;
    bool watching = false, watched = false;  ///< its own node
    bool revoked = false, wanted_back = false;
    bool lapsed = false;       ///< the lease ended without a release
    error_code refusal;        ///< of the last request about its node: a reading, a deletion
    bool downgrading = false;  ///< the request for it is under way
    bool renewed_before = false;
    boot_clock::time_point base;      ///< last reported to core
    boot_clock::time_point answered;  ///< when that was
    boot_clock::time_point expires;   ///< from then on core surely believes in no lease

    error_code why;       ///< of gone and failed
    spi::net::Gate gate;  ///< opens on any change

    bool ended() const noexcept { return state == State::gone || state == State::failed; }
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
struct InOrder {
    bool operator()(const QueueNodePtr& a, const QueueNodePtr& b) const noexcept {
        return a->serial < b->serial;
    }
};

}  // namespace holdfast::zookeeper
