// Words and numbers of the lab's small text forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::lab::detail {

/// The words of `text`, which are separated by blanks.
std::vector<std::string> words_of(std::string_view text);

/// `word` as a decimal number; nullopt when it is not one or too large.
std::optional<std::uint64_t> number_of(std::string_view word);

}  // namespace holdfast::lab::detail
