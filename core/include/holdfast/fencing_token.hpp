// A number that grows with every grant of one name. The store that a lock protects refuses smaller
// ones, and so stops a holder that was paused past its lease.
#pragma once
#include <compare>
#include <cstdint>

namespace holdfast {

/// Zero means "none": the backend, or its configuration, declares no fencing. Printed in decimal
/// everywhere. Tokens compare only within one backend and one deployment.
struct FencingToken {
    std::uint64_t value = 0;
    constexpr explicit operator bool() const noexcept { return value != 0; }
    constexpr auto operator<=>(const FencingToken&) const = default;
};

}  // namespace holdfast
