// CLOCK_BOOTTIME as a chrono clock: it runs while the machine sleeps, and never jumps. Leases use
// no other clock; nothing depends on the wall clock.
#pragma once
#include <chrono>

#include "holdfast/export.hpp"

namespace holdfast {

struct boot_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<boot_clock>;
    static constexpr bool is_steady = true;
    HOLDFAST_EXPORT static time_point now() noexcept;
};

using milliseconds = std::chrono::milliseconds;

/// A duration without a limit.
inline constexpr milliseconds forever = milliseconds::max();

/// Rounds up. Durations that milliseconds cannot count are `forever`.
template <class R, class P>
constexpr milliseconds whole_milliseconds(std::chrono::duration<R, P> d) {
    const bool endless = std::chrono::duration<double, std::milli>(d).count() >=
                         static_cast<double>(forever.count());
    return endless ? forever : std::chrono::ceil<milliseconds>(d);
}

/// How long until `t` by its own clock: zero when it has passed, `forever` for time_point::max().
template <class C, class D>
milliseconds time_until(std::chrono::time_point<C, D> t) {
    const auto now = C::now();
    if (t <= now) return milliseconds::zero();
    return t == t.max() ? forever : whole_milliseconds(t - now);
}

}  // namespace holdfast
