// What is heard of a break with `now`, by ground.
#pragma once
#include <holdfast/error.hpp>
#include <holdfast/lease.hpp>

namespace suite {

struct AfterBreak {
    holdfast::errc lost_reason;       ///< of the broken lease, even when the next one holds already
    holdfast::ReleaseResult release;  ///< of one that has not heard of it yet
    /// What the next holder hears after a broken reader. After a broken exclusive holder it is
    /// `crashed` everywhere.
    holdfast::PreviousHolder after_reader;
};
/// Of the ground under test.
const AfterBreak& after_break();

}  // namespace suite
