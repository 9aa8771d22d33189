// A snapshot of what one client has done so far. All fields but `waiting` and `held` only grow.
#pragma once
#include <cstdint>

#include "holdfast/histogram.hpp"

namespace holdfast {

/// A plain value. Fields may disagree by what other threads do while it is taken. prometheus_text()
/// writes it for a monitoring system.
struct Stats {
    /// Losses by reason; Lease::lost_reason() gives the reason of one.
    struct Losses {
        std::uint64_t expired = 0;   ///< its validity ended without a renewal
        std::uint64_t gone = 0;      ///< the server no longer had the lease
        std::uint64_t revoked = 0;   ///< an operator broke the lock
        std::uint64_t max_hold = 0;  ///< held for LockOptions::max_hold
        std::uint64_t closed = 0;    ///< held when its client was closed
        std::uint64_t other = 0;     ///< the server refused the renewal with another error
    };

    std::uint64_t acquired = 0;         ///< leases granted
    std::uint64_t contended = 0;        ///< ended contended or timed out
    std::uint64_t cancelled = 0;        ///< ended by the caller
    std::uint64_t failed = 0;           ///< ended with any other error
    std::uint64_t attempts = 0;         ///< attempts at the backend, many per waiting call
    std::uint64_t renewals = 0;         ///< answered renewals
    std::uint64_t renewals_failed = 0;  ///< unanswered renewals
    std::uint64_t lost = 0;             ///< leases declared lost, for any reason
    std::uint64_t released = 0;         ///< releases answered by the server
    std::uint64_t in_doubt = 0;         ///< attempts whose answer never came
    std::uint64_t requests = 0;         ///< commands or statements sent by the backend
    std::uint64_t moves = 0;            ///< how often other servers took over
    std::uint64_t waiting = 0;          ///< now: acquisitions under way
    std::uint64_t held = 0;             ///< now: leases held
    Losses losses;                      ///< `lost`, by reason
    Histogram wait_time;                ///< of granted leases: from the call to the grant
    Histogram hold_time;  ///< of ended leases: from the grant to the release call or the loss, at
                          ///< most to the end of validity
    Histogram renewal_time;  ///< of answered renewals: from the request to the answer
};

}  // namespace holdfast
