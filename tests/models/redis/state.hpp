// One moment of the model: the server's keys, what each client knows, and what is under way between
// them.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/operations.hpp"
#include "server.hpp"

namespace model {

using namespace holdfast;
using redis::OwnerState;

constexpr std::int64_t tick = 1000, ttl = 2000, first_ms = 1'700'000'000'000, boot_ms = 100'000;

struct Scenario {
    const char* name;
    int clients, ticks, asks, renewals, breaks, acquisitions;
    bool crash, cancel, revoke, many;
    int refusals = 0;    ///< attempts to which the server answers that it takes no writes
    int elsewhere = -1;  ///< this client listens at a replica, so the server does not count it
    /// What each client asks for: w a mutex, d a writer that becomes a reader, s a reader, 1 and 2
    /// permits of 2. Default: all of them w.
    std::string_view kinds = {};
    /// Requests that arrive while the slot is on its way to another server of a cluster, where none
    /// of its keys is yet, and earlier owners have left a key of each kind.
    int moves = 0;

    char kind(std::size_t client) const { return client < kinds.size() ? kinds[client] : 'w'; }
};

enum class Kind : char { enter = 'e', leave = 'l', renew = 'n' };

struct Request {
    Kind kind = Kind::enter;
    bool units = false;  ///< by the script for any kind
    std::int64_t sent = 0, deadline = 0;
    std::vector<std::string> arguments;
};

enum class Phase : char {
    idle = 'i',     ///< has not asked yet
    asked = 'a',    ///< asks, and is not in line as far as it knows
    waiting = 'w',  ///< was told that it is in line
    held = 'h',
    leaving = 'l',  ///< gives back until that is answered
    left = 'x',     ///< was told that nothing of it is there any more
    gone = 'g'      ///< crashed
};

struct Client {
    Phase phase = Phase::idle;
    OwnerState place;
    std::int64_t valid_until = 0;
    std::uint64_t token = 0;
    char how = 'u';
    bool shared = false;  ///< was a writer, and has begun to be a reader
    bool out = false, answered = false;
    Request request;  ///< under way, when `out`
    std::string reply;
    std::vector<Request> late;      ///< nobody waits for their answers any more
    std::vector<std::string> mail;  ///< hand-over messages under way
    int asks = 0, renewals = 0, breaks = 0, leaves = 0, acquisition = 0;
};

struct State {
    Store store;
    std::vector<Client> clients;
    std::uint64_t best = 0;  ///< highest token that anybody has believed in
    std::string best_owner;
    std::uint64_t written = 0;      ///< the highest of a writer's
    std::vector<std::string> gone;  ///< owners that were told that nothing of theirs is there
    bool revoked = false;
    int refusals = 0, moves = 0;
};

struct Violation : std::runtime_error {
    using runtime_error::runtime_error;
};

inline boot_clock::time_point at(std::int64_t server_ms) {
    return boot_clock::time_point(milliseconds(server_ms - first_ms + boot_ms));
}
inline std::int64_t server(boot_clock::time_point t) {
    return std::chrono::duration_cast<milliseconds>(t.time_since_epoch()).count() + first_ms -
           boot_ms;
}

/// Whether a message could do anything: in the other phases it is dropped when it is read.
inline bool listens(const Client& c) {
    return c.phase == Phase::asked || c.phase == Phase::waiting;
}

/// Takes out what can no longer make a difference, so that states which differ in nothing else are
/// one.
void forget(State&);

/// Equal for equal states only.
std::string text_of(const State&);

}  // namespace model
