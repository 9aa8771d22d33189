// How long something that a server granted is surely there: one rule, for core and for backends
// that have to tell by themselves how long a lease or a session lasts.
#pragma once

#include "holdfast/clock.hpp"

namespace holdfast::spi {

/// How much earlier than the server we think that something granted for `length` ends: 1 % of it,
/// for clocks that run at different speeds, and 2 ms for their resolution, as the implementations
/// of Redlock have it. Never blocks.
constexpr milliseconds drift(milliseconds length) noexcept {
    return length / 100 + milliseconds(2);
}

/// Until when nobody else can have what was granted for `length`. `base` is a moment before the
/// server began to count, such as that at which the request was sent: never that of the answer.
constexpr boot_clock::time_point valid_until(boot_clock::time_point base,
                                             milliseconds length) noexcept {
    return base + length - drift(length);
}

}  // namespace holdfast::spi
