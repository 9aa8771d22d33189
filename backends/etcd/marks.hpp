// robust=yes: what became of the holder before. A grant writes a mark of its owner in the same
// transaction, a release deletes it and says how it ended. So a mark of somebody else is of a
// holder that never released. It belongs to no lease, since it has to outlast the holder's. Readers
// read, and leave no mark; a downgrade is a release in this.
#pragma once
#include <string>

#include "holdfast/lease.hpp"
#include "messages.hpp"
#include "place.hpp"

namespace holdfast::etcd {

/// They do nothing for a place without marks.
void add_grant(const Place&, Transaction&);
void add_release(const Place&, Outcome, Transaction&);
void add_downgrade(const Place&, std::int64_t lease, Transaction&);
void add_withdrawal(const Place&, Transaction&);
/// What the transaction of the grant has found.
PreviousHolder read_grant(const Place&, const Result& transaction);

}  // namespace holdfast::etcd
