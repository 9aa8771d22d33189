// How far our clock is trusted against a server's: one rule, for core and for backends that have to
// tell by themselves how long a lease or a session surely lasts.
#pragma once

#include "holdfast/clock.hpp"

namespace holdfast::spi {

/// How much earlier than the server we think that something granted for `length` ends: 1 % of it,
/// for clocks that run at different speeds, and 2 ms for their resolution, as the implementations
/// of Redlock have it. Never blocks.
constexpr milliseconds drift(milliseconds length) noexcept {
    return length / 100 + milliseconds(2);
}

}  // namespace holdfast::spi
