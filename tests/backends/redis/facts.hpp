// What Redis declares besides its capabilities, in its default mode.
#pragma once
#include <algorithm>

#include "../../conformance/facts.hpp"

namespace suite {

/// A waiter's window: for so long it keeps its place after a look, and a grant that is handed to
/// it.
inline holdfast::milliseconds redis_window(holdfast::milliseconds ttl) {
    return std::min(ttl, holdfast::milliseconds(3000));
}
inline constexpr Facts redis_facts{.after_break = break_reason_kept,
                                   .handed_for = redis_window,
                                   .place_lasts = redis_window,
                                   .delay_in_lease = true,
                                   .release_remembered = false,
                                   .asks_after_downgrade = false,
                                   .lists_in_order = false,
                                   .grants_late = false};

}  // namespace suite
