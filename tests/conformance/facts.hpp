// What a backend declares besides its capabilities (docs/guarantees.md), in
// tests/backends/<name>/facts.hpp. The suite and tests/oracle read it.
#pragma once
#include <holdfast/clock.hpp>

#include "after_break.hpp"

namespace suite {

struct Facts {
    AfterBreak after_break;
    /// The server grants to waiters as soon as they fit, for so long, and with what their
    /// lock_delay and min_hold add. Null: they are granted when they ask again.
    holdfast::milliseconds (*handed_for)(holdfast::milliseconds ttl) = nullptr;
    /// How long a place in the queue lasts after each look. Null: as spi::NameState has it.
    holdfast::milliseconds (*place_lasts)(holdfast::milliseconds ttl) = nullptr;
    /// lock_delay and min_hold are part of the lease at the server, and min_hold begins anew with
    /// each answer to an attempt.
    bool delay_in_lease = false;
    /// ... and a release within lock_delay does not know that it comes too late.
    bool released_in_delay = false;
    /// A reader's token is above those of the writers before it, not of readers.
    bool readers_in_any_order = false;
    /// The server still knows of a release when it is repeated.
    bool release_remembered = true;
    /// An attempt that is repeated after its grant gives that grant back first.
    bool repeats_anew = false;
    /// Waiters poll: they have a place only where they wait for readers or as one, count from their
    /// first attempt, and are not shown.
    bool marks = false;
    /// A broken holder cannot open the name any more, and hears of the break for so long.
    holdfast::milliseconds broken_for{0};
    /// A holder that was downgraded may still repeat its first request.
    bool asks_after_downgrade = true;
    /// Operators' calls return holders in the order of their grants.
    bool lists_in_order = true;
    /// Somebody who looks just then delays others, and a waiter is granted at a later look.
    bool grants_late = true;
};

// A server that keeps a trace of the break says so to its holder; docs/guarantees.md has the same.
inline constexpr AfterBreak break_traced{holdfast::errc::revoked,
                                         holdfast::ReleaseResult::owned_by_other,
                                         holdfast::PreviousHolder::none};
inline constexpr AfterBreak break_forgotten{
    holdfast::errc::lost, holdfast::ReleaseResult::already_expired, holdfast::PreviousHolder::none};
inline constexpr AfterBreak break_reason_kept{holdfast::errc::revoked,
                                              holdfast::ReleaseResult::already_expired,
                                              holdfast::PreviousHolder::none};

}  // namespace suite
