// What ZooKeeper declares besides its capabilities, with robust=yes (backends/zookeeper/README.md).
#pragma once
#include "../../conformance/facts.hpp"

namespace suite {

/// As long as the session of its client.
inline holdfast::milliseconds zookeeper_line(holdfast::milliseconds) {
    return std::chrono::hours(24);
}
inline constexpr Facts zookeeper_facts{
    .after_break = {holdfast::errc::lost, holdfast::ReleaseResult::already_expired,
                    holdfast::PreviousHolder::released},
    .handed_for = zookeeper_line,
    .place_lasts = zookeeper_line,
    .delay_in_lease = true,
    .readers_in_any_order = true,
    .release_remembered = false,
    .asks_after_downgrade = false,
    .grants_late = false,
    .told_within = holdfast::milliseconds(400),
    // The client ends it, with the next heartbeat.
    .ends_late = holdfast::milliseconds(1500),
    .looks_at_own_only = true,
    .broken_may_release = false,
    .marks_of_holders = true,
    .released_for_good = true,
    .client_remembers = true,
    .asks_when_notified = true,
    .permits_in_turn = true,
    // The next heartbeat may prove it, an eighth of the ttl later.
    .renews_within = holdfast::milliseconds(1500)};

}  // namespace suite
