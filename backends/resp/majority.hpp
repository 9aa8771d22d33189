// How many of several servers decide.
#pragma once
#include <cstddef>

namespace holdfast::resp {

/// More than half: two of them always share a server. The one place that says so.
constexpr std::size_t majority(std::size_t servers) noexcept {
    return servers / 2 + 1;
}

}  // namespace holdfast::resp
