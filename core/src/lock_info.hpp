// What is fixed for one Lock object and shared with its acquisitions and leases.
#pragma once
#include <atomic>
#include <string>

#include "holdfast/clock.hpp"

namespace holdfast {

struct LockInfo {
    std::string name;
    milliseconds ttl{}, request_timeout{}, max_hold{forever};
    bool renew = true;
    /// The last attempt found it busy: a blocking caller then queues at once.
    mutable std::atomic<bool> busy{false};
};

/// now + wait, without overflow.
inline boot_clock::time_point after(boot_clock::time_point now, milliseconds wait) noexcept {
    const auto room = boot_clock::time_point::max() - now;
    return wait >= std::chrono::floor<milliseconds>(room) ? boot_clock::time_point::max()
                                                          : now + wait;
}

}  // namespace holdfast
