// On a busy machine the first requests of many processes may take longer than their time-outs,
// which a short ttl makes short: a server that did not answer is asked again.
#pragma once
#include <algorithm>
#include <holdfast/error.hpp>
#include <holdfast/lab/wait_until.hpp>

#include "measure/latency.hpp"

namespace holdfast::bench {

/// What a busy machine is given for what takes no time on an idle one.
inline constexpr auto stuck_after = std::chrono::duration_cast<milliseconds>(6 * lab::default_cap);

/// Calls `acquire` with the milliseconds that are left, until its answer is a server's or none are.
template <class Acquire>
error_code until_answered(milliseconds patience, Acquire acquire) {
    const auto end = Clock::now() + patience;
    for (;;) {
        const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
        const error_code answer = acquire(std::max(left, milliseconds(0)));
        const bool silent = answer == errc::unavailable || answer == errc::in_doubt;
        if (!silent || left <= milliseconds(0)) return answer;
    }
}

}  // namespace holdfast::bench
