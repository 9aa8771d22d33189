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
    /// Each client reckons on the server's clock since when its waiters wait, and may be off by so
    /// much: they stand in line accordingly.
    holdfast::milliseconds tickets_within{0};
    /// Somebody who looks just then delays others, and a waiter is granted at a later look.
    bool grants_late = true;

    // --- of servers that keep a key or a node for each holder and each waiter
    /// The first of them that fit hold, also when the one before them has only ended. A waiter
    /// hears of it within so long. 0: they are granted when somebody looks.
    holdfast::milliseconds told_within{0};
    /// An owner whose grant was broken with `now`, before it asked, stands in line anew.
    bool starts_over = false;
    /// Leases last whole seconds, and their ends are told in whole seconds.
    bool whole_seconds = false;
    /// The server notices the end of a lease so much later.
    holdfast::milliseconds ends_late{0};
    /// A release says what became of its own grant, whoever holds the name now.
    bool looks_at_own_only = false;
    /// A holder that was broken without `now` may still release; else its release opens the name,
    /// but is `owned_by_other`, and counts as none for the next holder.
    bool broken_may_release = true;
    /// Each exclusive holder leaves a mark when it hears of its grant: tests/oracle/marks.hpp.
    bool marks_of_holders = false;
    /// That the last holder has released is known for good, also where only readers have been; else
    /// for as long as its lease would have lasted.
    bool released_for_good = false;
    /// A break takes the place of a request to release.
    bool break_replaces_request = false;
    /// The client knows what its lease and its release have come to, also when it is asked again.
    bool client_remembers = false;
    /// Its client alone knows by what a waiter is let in: it asks as soon as it is notified, as
    /// core does.
    bool asks_when_notified = false;
    /// Waiters ask for permits one after the other, also those with another limit. A turn is left
    /// just behind the grant.
    bool permits_in_turn = false;
    /// A renewal takes so long at the most.
    holdfast::milliseconds renews_within{0};
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
