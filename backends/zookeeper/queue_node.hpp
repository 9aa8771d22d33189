// One acquisition's place in a line, from its first request to the moment when nothing of it is
// left at the servers.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "holdfast/lease.hpp"
#include "holdfast/spi/net/gate.hpp"

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
    std::weak_ptr<Session> session;
    std::string owner, name, parent;
    std::string guid;  ///< of this acquisition in this session
    std::string node;  ///< empty until known
    std::int64_t key = 0;
    std::int64_t czxid = 0;
    milliseconds ttl{};

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
    bool revoked = false;
    bool renewed_before = false;
    boot_clock::time_point base;      ///< reported to core last
    boot_clock::time_point answered;  ///< when
    boot_clock::time_point expires;   ///< when core surely believes no more

    error_code why;       ///< of gone and failed
    spi::net::Gate gate;  ///< any of this changed

    std::string path() const { return parent + "/" + node; }
};
using QueueNodePtr = std::shared_ptr<QueueNode>;

}  // namespace holdfast::zookeeper
