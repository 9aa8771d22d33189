// What Redlock declares besides its capabilities.
#pragma once
#include "../../conformance/facts.hpp"

namespace suite {

/// Of a mark, where rounds take no time.
inline holdfast::milliseconds redlock_mark(holdfast::milliseconds) {
    return holdfast::milliseconds(300);
}
inline constexpr Facts redlock_facts{.after_break = break_reason_kept,
                                     .place_lasts = redlock_mark,
                                     .delay_in_lease = true,
                                     .released_in_delay = true,
                                     .readers_in_any_order = true,
                                     .release_remembered = false,
                                     .repeats_anew = true,
                                     .marks = true,
                                     .broken_for = holdfast::milliseconds(60'000),
                                     .lists_in_order = false,
                                     .grants_late = false};

}  // namespace suite
