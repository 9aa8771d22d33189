// Lengths and times from a server's answer, or from what others stored there: those may be any
// number, while the clocks here count nanoseconds in 64 bits.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace holdfast::spi {

/// Longer than any option allows; the sum of two can still be added to any clock's time.
inline constexpr std::chrono::hours longest_length{100 * 366 * 24};

/// `n` units, or as many as the longest length has.
template <class Unit>
constexpr Unit bounded_length(std::int64_t n) noexcept {
    constexpr std::int64_t most = Unit(longest_length).count();
    return Unit(std::clamp(n, -most, most));
}

/// `n` units after 1970, or the nearest time that a clock here can show.
template <class Unit>
constexpr std::chrono::system_clock::time_point bounded_time(std::int64_t n) noexcept {
    constexpr std::int64_t most = Unit(2 * longest_length).count();
    return std::chrono::system_clock::time_point(Unit(std::clamp<std::int64_t>(n, 0, most)));
}

}  // namespace holdfast::spi
