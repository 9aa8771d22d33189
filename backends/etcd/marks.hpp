// robust=yes: how the previous holder ended. A grant writes a mark of its owner in the same
// transaction; a release deletes it and records the outcome. So a mark of another owner belongs to
// a holder that never released. A mark is attached to no lease, since it must outlast the holder's.
// Readers read marks and leave none; a downgrade counts as a release.
#pragma once
#include <string>

#include "holdfast/lease.hpp"
#include "messages.hpp"
#include "place.hpp"

namespace holdfast::etcd {

/// These do nothing for a place without marks.
void add_grant(const Place&, Transaction&);
void add_release(const Place&, Outcome, Transaction&);
void add_downgrade(const Place&, std::int64_t lease, Transaction&);
void add_withdrawal(const Place&, Transaction&);
/// What the grant's transaction has found.
PreviousHolder read_grant(const Place&, const Result& transaction);

}  // namespace holdfast::etcd
