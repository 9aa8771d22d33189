// Finds out what Holdfast really sends, so that a bare client can send the very same.
#pragma once
#include "bench.hpp"
#include "floors/trace.hpp"

namespace holdfast::bench {

/// One uncontended cycle by a blocking caller, as the server saw it. Errors: SelfCheck.
Trace record_one_cycle(const Deployment&, lab::RedisServer&);

/// Two cycles each of `in_flight` locks under way at once. Errors: SelfCheck.
Trace record_in_flight(const Deployment&, lab::RedisServer&, std::size_t in_flight);

/// Takes and frees one name with Holdfast and with the bare client of etcd. Errors: SelfCheck
/// unless both send the same, apart from owners, leases and revisions.
void must_send_the_same(const Deployment& etcd);

}  // namespace holdfast::bench
