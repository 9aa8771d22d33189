// robust=yes: how the previous holder ended. A grant writes a mark of its owner in the same
// transaction; a release deletes it and records the outcome. So a mark of another owner belongs to
// a holder that never released. A mark is attached to no lease, since it must outlast the holder's.
// Readers read marks and leave none; a downgrade counts as a release.
#pragma once
#include <string>

#include "holdfast/lease.hpp"
#include "messages.hpp"
#include "owner_state.hpp"

namespace holdfast::etcd {

/// These do nothing for a place without marks.
void add_grant(const OwnerState&, Transaction);
void add_release(const OwnerState&, Outcome, Transaction);
void add_downgrade(const OwnerState&, std::int64_t lease, Transaction);
void add_withdrawal(const OwnerState&, Transaction);
/// What the grant's transaction has found.
PreviousHolder read_grant(const OwnerState&, const Result& transaction);

}  // namespace holdfast::etcd
