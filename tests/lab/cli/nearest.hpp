// The known word closest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::lab::cli {

/// The candidate with the fewest edits from `word`; empty when there is no candidate.
std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace holdfast::lab::cli
