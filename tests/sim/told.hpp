// What a client was told, and when, by the time in which its machine runs.
#pragma once
#include <algorithm>

#include "holdfast/error.hpp"
#include "kernel.hpp"

namespace holdfast::sim {

/// A moment at which a machine runs.
struct Running {
    Nanos at = 0, frozen = 0;

    static Running of(const Process& p, Nanos now) noexcept {
        return {std::max(now, p.late_until()), p.frozen};
    }
    Nanos until(const Running& later) const noexcept {
        return later.at - at - (later.frozen - frozen);
    }
};

struct Told {
    unsigned times = 0;
    Running when;     ///< for the last time
    error_code what;  ///< then

    void now(const Process& p, const error_code& ec = {}) {
        ++times;
        when = Running::of(p, Kernel::running()->now());
        what = ec;
    }
};

}  // namespace holdfast::sim
