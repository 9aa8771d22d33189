// Leases of this client. All that it is granted within a short while is attached to one lease,
// which is never kept alive and ends by itself: what has to last longer is attached to a later one.
// So no answer about a lease has to be believed but the first, and a validity that counts from the
// moment at which that was asked for is right whatever leaders do (docs/adr/0021-etcd.md). Waiters,
// whose place proves nothing, share a lease that is kept alive.
#pragma once
#include <map>

#include "holdfast/spi/net/gate.hpp"
#include "members.hpp"

namespace holdfast::etcd {

struct Lease {
    std::int64_t id = 0;
    boot_clock::time_point base{};  ///< the server began to count after it
    milliseconds ttl{};             ///< as the server set it, which has a lower bound
    bool over(boot_clock::time_point now) const noexcept { return id == 0 || now >= base + ttl; }
};

/// Engine thread only.
class Leases : public std::enable_shared_from_this<Leases> {
public:
    Leases(std::shared_ptr<Shared>, std::shared_ptr<Members>);

    /// One that was granted at most a twentieth of its ttl ago, and half a second; a new one where
    /// there is none. Callers that come meanwhile share the request.
    awaitable<result<Lease>> young(milliseconds ttl, boot_clock::time_point deadline,
                                   std::string* detail);

    /// The one of waiters: as it is, perhaps over.
    const Lease& waiting() const noexcept { return waiting_; }
    /// It is believed to be there for a while.
    bool waiting_alive() const noexcept;
    /// A new one where it is not alive.
    awaitable<result<Lease>> for_waiting(boot_clock::time_point deadline, std::string* detail);
    /// Keeps it alive once. False: the server no longer has it, and nothing that it bore.
    awaitable<bool> keep_waiting(boot_clock::time_point deadline);
    /// The next for_waiting() asks for another one, and this one ends by itself.
    void leave_waiting() noexcept;
    /// Ends one, with what is attached to it.
    awaitable<void> end(std::int64_t id, boot_clock::time_point deadline);
    /// Ends that of waiters.
    awaitable<void> end_waiting(boot_clock::time_point deadline);

private:
    struct Slot {
        Lease lease;
        bool asking = false;
        unsigned failures = 0;
        error_code why;
        std::string detail;
        spi::net::Gate gate;
    };
    awaitable<result<Lease>> grant(milliseconds ttl, boot_clock::time_point deadline,
                                   std::string* detail);
    /// The slot's lease, or a new one; those that ask meanwhile share the request.
    awaitable<result<Lease>> shared_grant(Slot&, milliseconds ttl, boot_clock::time_point deadline,
                                          std::string* detail);

    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Members> members_;
    std::map<milliseconds, Slot> slots_;
    Slot for_waiting_;
    Lease waiting_;  ///< its base is that of the last keep-alive
};

}  // namespace holdfast::etcd
