// A process that is stopped inside a transaction keeps SQLite's file locked for everybody: a fault
// of its own, which scenarios that stop a holder tell from what they are about.
#pragma once
#include "site.hpp"

namespace holdfast::bench {

/// Whether all through `cap` some process was inside a transaction that writes to the deployment's
/// file; false for every other backend. Blocks for at most `cap`.
bool stays_locked(const Deployment&, std::chrono::milliseconds cap);

}  // namespace holdfast::bench
