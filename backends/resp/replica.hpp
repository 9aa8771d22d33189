// A server that has become a replica is left: its address may lead to the new primary by now.
#pragma once
#include "holdfast/clock.hpp"

namespace holdfast::resp {

/// Of one connection: leaves at most once a second, as it may lead to the replica again.
class LeftReplica {
public:
    /// Whether to leave it now.
    bool due(boot_clock::time_point now) noexcept {
        if (now - last_ < milliseconds(1000)) return false;
        last_ = now;
        return true;
    }

private:
    boot_clock::time_point last_{};
};

}  // namespace holdfast::resp
