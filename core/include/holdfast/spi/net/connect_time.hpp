// How long making a connection may take.
#pragma once
#include <algorithm>

#include "holdfast/clock.hpp"

namespace holdfast::spi::net {

/// A connection is for all callers, so it is not given up at the deadline of a short first one.
inline constexpr milliseconds least_connect_time{2000};

/// Until when to go on with a connection that a request with that deadline begins. `times`: so many
/// times the least time.
inline boot_clock::time_point connect_until(boot_clock::time_point deadline,
                                            int times = 1) noexcept {
    return std::max(deadline, boot_clock::now() + times * least_connect_time);
}

}  // namespace holdfast::spi::net
