// A recorded or hand-written sequence of Redis requests that a bare client can send again and
// again, each time with fresh owner ids and deadlines, so that every request succeeds as the first
// did.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <holdfast/lab/redis_monitor.hpp>

namespace holdfast::bench {

/// A command in the bytes of Redis' protocol.
std::string resp(const std::vector<std::string>& arguments);

struct Grant {
    std::string name, owner;
};

struct Trace {
    /// A place in the bytes that changes with every pass; its length stays.
    struct Patch {
        enum class Kind : std::uint8_t { owner, millis, micros } kind{};
        std::size_t at = 0;
        std::size_t owner = 0;  ///< index into grants
        long long offset = 0;   ///< ahead of the wall clock when recorded, in ms or us
    };
    struct Command {
        std::string bytes;  ///< RESP
        std::vector<Patch> patches;
        std::vector<std::size_t> owners;  ///< indexes of the grants that it names, each once
    };
    std::vector<Command> commands;
    std::vector<Grant> grants;  ///< one per cycle
    std::size_t in_flight = 1;  ///< cycles under way at once when it was recorded

    std::size_t cycles() const { return grants.size(); }
    /// Requests to keep unanswered so that as many cycles are under way as when it was recorded.
    std::size_t window() const;
};

/// The documents' lock: SET key owner NX PX ttl, then compare-and-delete by EVALSHA, for `names` at
/// once.
Trace plain_pair(const std::vector<std::string>& names, const std::string& script_sha);

/// A PING twice: what two round trips cost with nothing to do. With `written`, two SETs instead:
/// what they cost where the server makes each write durable.
Trace bare_round_trips(bool written);

/// What a client sent for these grants, as MONITOR saw it. Requests that name none of them (time
/// samples, pings, subscriptions) are left out.
Trace recorded(const std::vector<lab::MonitorLine>& lines, std::vector<Grant> grants,
               std::size_t in_flight);

inline constexpr const char* compare_and_delete =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";

}  // namespace holdfast::bench
