// One acquisition's place in a line, from its first request to the moment when nothing of it is
// left at the servers.
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
        creating,  ///< its node is asked for, or may be there after a lost answer
        queued,    ///< its node is there
        granted,   ///< and it was first; core holds a lease, or is about to
        gone,      ///< nothing is left
        failed,    ///< the server refused; nothing is left
    };
    State state = State::idle;
    std::uint64_t serial = 0;  ///< of its session's places: the order in which they came
    std::weak_ptr<Session> session;
    std::string owner, name, parent;
    std::string guid;  ///< of this acquisition in this session
    Recipe recipe = Recipe::mutex;
    bool reads = false;       ///< beside other readers: by its name, or after a downgrade
    std::string node;         ///< empty until known
    std::int32_t number = 0;  ///< the server's, at the end of the node's name
    std::uint32_t permits = 0, limit = 0;  ///< of a semaphore
    std::string name_says;                 ///< permits: what is to be at the name itself
    bool agreed = false;                   ///< and is, since this one's nodes are there
    std::vector<std::string> more;         ///< permits beyond the first: their nodes
    std::shared_ptr<QueueNode> turn;       ///< permits: the place in line for them
    CallPtr own_node, own_line;  ///< permits: what is at the name itself, asked afterwards
    bool folder = false;         ///< that of permits was there when this came into line
    bool strangers = false;      ///< were there in the last list, and it was not seen whose
    std::int64_t czxid = 0;
    std::int32_t version = 0;  ///< of its data, as last seen
    milliseconds ttl{}, lock_delay{};

    bool enlisted = false;         ///< waits in its session until there is room for its request
    bool asking = false;           ///< takes that room
    boot_clock::time_point asked;  ///< when its node was asked for first

    bool foreseen = false;  ///< asked for without a list: it is expected to be the first
    std::uint64_t verified_parent =
        0;                   ///< the watched life of its parent in which its node was made
    bool waited = false;     ///< somebody was ahead of it
    bool listed = false;     ///< all nodes that may be ahead of it are known
    std::uint64_t list = 0;  ///< the number of that list
    bool in_doubt = false;   ///< the answer about its node was lost
    int tries = 0;           ///< the node above was missing

    bool refused = false;   ///< its line may not be read
    bool leaving = false;   ///< nothing of it is to be left
    bool removing = false;  ///< the request for that is under way
    bool maybe_removed = false, was_removed = false;
    Outcome how = Outcome::abandoned;

    bool told = false;    ///< a grant was given to core
    bool marked = false;  ///< robust: the mark names this grant
    PreviousHolder previous = PreviousHolder::unknown;
    bool watching = false, watched = false;  ///< its own node
    bool revoked = false, wanted_back = false;
    bool downgrading = false;  ///< the request for that is under way
    bool renewed_before = false;
    boot_clock::time_point base;      ///< reported to core last
    boot_clock::time_point answered;  ///< when
    boot_clock::time_point expires;   ///< when core surely believes no more

    error_code why;       ///< of gone and failed
    spi::net::Gate gate;  ///< any of this changed

    std::string path() const { return parent + "/" + node; }
    std::vector<std::string> nodes() const {
        std::vector<std::string> all(more);
        all.insert(all.begin(), node);
        return all;
    }
};
using QueueNodePtr = std::shared_ptr<QueueNode>;
struct InOrder {
    bool operator()(const QueueNodePtr& a, const QueueNodePtr& b) const noexcept {
        return a->serial < b->serial;
    }
};

}  // namespace holdfast::zookeeper
