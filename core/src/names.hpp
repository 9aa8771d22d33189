// What a lock's name may be: 1 to 512 bytes of UTF-8 without NUL.
#pragma once
#include <cstddef>
#include <string_view>

namespace holdfast {

inline constexpr std::size_t max_name = 512;

/// Empty when the name is fine, else what is wrong with it.
std::string_view name_fault(std::string_view name) noexcept;

}  // namespace holdfast
