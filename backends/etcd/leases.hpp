// Leases of this client. Grants of a short period are attached to one lease, which is never kept
// alive and ends by itself; what must last longer is attached to a later lease. So only the first
// answer about a lease has to be believed. A validity counts from when that was requested, and is
// right whatever leaders do (docs/adr/0021-etcd.md). Waiters, whose place proves nothing, share a
// lease that is kept alive.
#pragma once
#include <map>

#include "holdfast/spi/net/gate.hpp"
#include "lease.hpp"
#include "members.hpp"

namespace holdfast::etcd {

/// Engine thread only.
class Leases : public std::enable_shared_from_this<Leases> {
public:
    Leases(std::shared_ptr<Shared>, std::shared_ptr<Members>);

    /// What young() returns where that needs no request; null otherwise.
    const Lease* young_at_hand(milliseconds ttl) const noexcept;
    /// A lease that was granted at most min(ttl / 20, 500 ms) ago; a new one if there is none.
    /// Callers that come meanwhile share the request.
    awaitable<spi::Answer<Lease>> young(milliseconds ttl, boot_clock::time_point deadline);

    /// The waiters' lease as it is, perhaps over.
    const Lease& waiting() const noexcept { return waiting_; }
    /// The waiters' lease; a new one if it is not alive.
    awaitable<spi::Answer<Lease>> for_waiting(boot_clock::time_point deadline);
    /// Keeps it alive once. False: the server no longer has it, nor anything attached to it.
    awaitable<bool> keep_waiting(boot_clock::time_point deadline);
    /// Makes the next for_waiting() request another one. This one ends by itself.
    void leave_waiting() noexcept;
    /// The server has forgotten the leases: makes the next requests ask for others.
    void forget() noexcept;
    /// Ends a lease, with what is attached to it.
    awaitable<void> end(std::int64_t id, boot_clock::time_point deadline);

private:
    /// Whether the waiters' lease is believed to last for a while.
    bool waiting_alive() const noexcept;
    struct Slot {
        Lease lease;
        bool asking = false;
        unsigned failures = 0;
        spi::Failure why;  ///< the last failure
        spi::net::Gate gate;
    };
    awaitable<spi::Answer<Lease>> grant(milliseconds ttl, boot_clock::time_point deadline);
    /// The slot's lease, or a new one. Callers that come meanwhile share the request.
    awaitable<spi::Answer<Lease>> shared_grant(Slot&, milliseconds ttl,
                                               boot_clock::time_point deadline);

    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Members> members_;
    std::map<milliseconds, Slot> slots_;
    Slot for_waiting_;
    Lease waiting_;  ///< `base` is that of the last keep-alive
};

}  // namespace holdfast::etcd
