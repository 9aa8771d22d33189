// A number that grows with every grant of one name. The store that a lock protects refuses smaller
// tokens, and so stops a holder that was paused past its lease.
#pragma once
#include <compare>
#include <cstdint>

namespace holdfast {

/// Zero means "none": the backend or its configuration has no fencing. Always printed in decimal.
/// Only tokens of one backend and one deployment compare.
struct FencingToken {
    std::uint64_t value = 0;
    constexpr explicit operator bool() const noexcept { return value != 0; }
    constexpr auto operator<=>(const FencingToken&) const = default;
};

}  // namespace holdfast
