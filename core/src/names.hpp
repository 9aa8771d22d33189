// Which names a lock may have: 1 to 512 bytes of UTF-8 without NUL.
#pragma once
#include <cstddef>
#include <string_view>

namespace holdfast {

inline constexpr std::size_t max_name = 512;

/// What is wrong with the name; empty when it is valid.
std::string_view name_fault(std::string_view name) noexcept;

}  // namespace holdfast
