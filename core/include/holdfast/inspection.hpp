// What operators see of a name, and what they say to its holders: the answers and the options of
// Client's calls for them.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/fencing_token.hpp"
#include "holdfast/kind.hpp"

namespace holdfast {

/// One holder, or one waiter at its place in the queue.
struct Holder {
    std::string owner;                          ///< owner id, as the server has it
    std::string host;                           ///< empty: a foreign client holds it
    long pid = 0;                               ///< 0 when unknown
    std::string note;                           ///< AcquireOptions::note
    FencingToken token{};                       ///< 0: a waiter, a foreign holder, or permits
    std::optional<milliseconds> ttl_left = {};  ///< none: a waiter, or it never expires
    std::optional<milliseconds> held_for = {};  ///< none: unknown
    bool foreign = false;                       ///< the client is not one of Holdfast's
    bool revoked = false;                       ///< broken; free when ttl_left has passed
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    bool asked = false;  ///< its release was requested (request_release)
};

/// What one node reports, where a majority of nodes decides (Redlock).
struct NodeView {
    std::string node;   ///< "127.0.0.1:7001"
    std::string owner;  ///< owner id at this node; empty: free, or no answer
    std::optional<milliseconds> ttl_left = {};  ///< none: free, or never expires
    error_code error;                           ///< why the node did not answer
};

/// The break of a lease, as the client that broke it recorded it. Every client that may break locks
/// may also write such a record.
struct BreakRecord {
    std::chrono::system_clock::time_point at{};  ///< by the clock of that client's machine
    std::string host;                            ///< of that client
    long pid = 0;                                ///< of that client
    std::string note;                            ///< BreakOptions::note
    std::string owner;     ///< owner id of the lease; of several, the first one's
    FencingToken token{};  ///< of that lease
    bool now = false;      ///< the name was freed at once
};

struct Inspection {
    std::string name;
    Kind kind = Kind::mutex;                      ///< of the holders and waiters
    std::uint32_t limit = 1;                      ///< permits of a semaphore
    std::optional<milliseconds> closed_for = {};  ///< kept closed by lock_delay or min_hold
    std::vector<Holder> holders, waiters;
    std::vector<NodeView> nodes;  ///< with Redlock; empty where one server or ensemble decides
    std::string server = {};      ///< that answers now: "db1:5432 (10.0.0.1)"; may be empty
    FencingToken last_token{};    ///< highest token granted, as far as the server remembers
    /// The last break of the name, for a day. None: there was none, or it could not be recorded.
    std::optional<BreakRecord> last_break = {};
};

/// Which holders to break or to ask. Default: all holders of the name.
struct HolderFilter {
    std::optional<FencingToken> if_token = {};
    /// An owner id. An empty one is an error: a variable that is not set must not mean all holders.
    std::optional<std::string> owner = {};
};

struct BreakOptions {
    /// Breaks only the grant with this token. Default: any grant of the name.
    std::optional<FencingToken> if_token = {};
    /// Frees the name at once. Two holders are possible until the last validity has ended.
    bool now = false;
    /// Breaks only the grant of this owner. Default: all holders. An empty one is an error.
    std::optional<std::string> owner = {};
    /// The reason and the user that breaks it, for Inspection::last_break; at most 128 bytes are
    /// kept. Default: the name of this process' user; with sudo, of the user who called it.
    std::string note = {};

    HolderFilter which() const { return {if_token, owner}; }
};

/// One holder whose lease was broken, and how long until its share of the name is free.
struct Broken {
    Holder holder;
    milliseconds free_in{0};
};

}  // namespace holdfast
