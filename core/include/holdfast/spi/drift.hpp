// How long something that a server granted is surely there: one rule, for core and for backends
// that judge by themselves how long a lease or a session lasts.
#pragma once

#include "holdfast/clock.hpp"

namespace holdfast::spi {

/// How much earlier than the server the client assumes the end of something granted for `length`: 1
/// % of it, for clocks of different speed, and 2 ms, for their resolution. Implementations of
/// Redlock use the same formula.
constexpr milliseconds drift(milliseconds length) noexcept {
    return length / 100 + milliseconds(2);
}

/// Until when no other client can have what was granted for `length`. `base` is a moment before the
/// server began to count, such as when the request was sent; never when the answer came.
constexpr boot_clock::time_point valid_until(boot_clock::time_point base,
                                             milliseconds length) noexcept {
    return base + length - drift(length);
}

}  // namespace holdfast::spi
