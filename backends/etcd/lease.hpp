// A lease of etcd's: what it was asked for with, and how much of it may be believed.
#pragma once
#include <algorithm>
#include <cstdint>

#include "holdfast/clock.hpp"

namespace holdfast::etcd {

struct Lease {
    std::int64_t id = 0;
    boot_clock::time_point base{};  ///< the server began to count after this
    milliseconds ttl{};  ///< what was asked for, in whole seconds; the server's is no less
    bool over(boot_clock::time_point now) const noexcept { return id == 0 || now >= base + ttl; }
    /// Of a key with a lock_delay, which goes on for the delay, or longer.
    milliseconds believed(milliseconds wanted, milliseconds delay) const noexcept {
        return delay > milliseconds::zero() ? std::min(wanted, ttl - delay) : ttl;
    }
};

}  // namespace holdfast::etcd
