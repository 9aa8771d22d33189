// A snapshot of what one client has done so far; counters only grow.
#pragma once
#include <cstdint>

namespace holdfast {

struct Stats {
    std::uint64_t acquired = 0;         ///< leases granted
    std::uint64_t contended = 0;        ///< ended contended or timed out
    std::uint64_t cancelled = 0;        ///< ended by their caller
    std::uint64_t failed = 0;           ///< ended with any other error
    std::uint64_t attempts = 0;         ///< tries at the backend, many per waiting call
    std::uint64_t renewals = 0;         ///< answered renewals
    std::uint64_t renewals_failed = 0;  ///< unanswered ones
    std::uint64_t lost = 0;             ///< leases declared lost
    std::uint64_t released = 0;         ///< releases answered by the server
    std::uint64_t in_doubt = 0;         ///< attempts whose answer never came
    std::uint64_t requests = 0;         ///< commands or statements sent by the backend
    std::uint64_t waiting = 0;          ///< now: acquisitions under way
    std::uint64_t held = 0;             ///< now: leases held
};

}  // namespace holdfast
