// Another lease for a key, while it is there and not revoked: how a waiter becomes a holder, how a
// grant is renewed, and, with fewer units in the same step, how a writer becomes a reader.
#pragma once
#include "holdfast/lease.hpp"
#include "lease.hpp"
#include "messages.hpp"
#include "owner_state.hpp"

namespace holdfast::etcd {

class Change {
public:
    enum class Outcome : std::uint8_t {
        again,  ///< its value or revision was another one, which is known now
        done,
        gone,
        revoked,
        other_kind,  ///< of a grant only: there is a key of another kind at the name itself
        refused      ///< it was another one too often
    };
    enum class What : std::uint8_t {
        adopt,  ///< it goes on waiting, on the waiters' lease
        take,   ///< a waiter becomes a holder
        renew
    };
    Change(OwnerState& p, const Lease& l, const spi::Units& u, What what)
        : place_(p), lease_(l), units_(u), what_(what) {}

    void request(Transaction);
    Outcome answered(const Result&, std::int64_t revision);
    PreviousHolder previous() const noexcept { return previous_; }

private:
    OwnerState& place_;
    const Lease lease_;
    const spi::Units units_;
    const What what_;
    std::string value_;  ///< as the request leaves it
    int rounds_ = 0;
    PreviousHolder previous_ = PreviousHolder::unknown;
};

}  // namespace holdfast::etcd
