// A number that grows with every grant of one name. The store that a lock protects refuses smaller
// tokens, and so stops a holder that was paused past its lease.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace holdfast {

/// Zero means "none": the backend or its configuration has no fencing. Always printed in decimal.
/// Only tokens of one backend and one deployment compare.
struct FencingToken {
    std::uint64_t value = 0;
    constexpr explicit operator bool() const noexcept { return value != 0; }
    constexpr auto operator<=>(const FencingToken&) const = default;
};

/// In decimal.
inline std::string to_string(FencingToken token) {
    return std::to_string(token.value);
}
inline std::ostream& operator<<(std::ostream& out, FencingToken token) {
    return out << to_string(token);  // whatever base and locale the stream has
}

}  // namespace holdfast

template <>
struct std::hash<holdfast::FencingToken> {
    std::size_t operator()(holdfast::FencingToken token) const noexcept {
        return std::hash<std::uint64_t>()(token.value);
    }
};
