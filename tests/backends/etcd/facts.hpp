// What etcd declares besides its capabilities, with robust=yes (backends/etcd/README.md).
#pragma once
#include "../../conformance/facts.hpp"

namespace suite {

/// The client keeps the lease of its waiters alive, also of one that fits and has not asked yet.
inline holdfast::milliseconds etcd_line(holdfast::milliseconds) {
    return std::chrono::hours(24);
}
inline constexpr Facts etcd_facts{.after_break = break_forgotten,
                                  .handed_for = etcd_line,
                                  .place_lasts = etcd_line,
                                  .delay_in_lease = true,
                                  .readers_in_any_order = true,
                                  .release_remembered = false,
                                  .grants_late = false,
                                  // A member tells a watch of a change within 300 ms.
                                  .told_within = holdfast::milliseconds(400),
                                  .starts_over = true,
                                  .whole_seconds = true,
                                  // The leader looks for leases that have ended twice a second.
                                  .ends_late = holdfast::milliseconds(600),
                                  .looks_at_own_only = true,
                                  .broken_may_release = false,
                                  .marks_of_holders = true,
                                  .break_replaces_request = true};

}  // namespace suite
