// Edit distance over single bytes: the words are short and plain.
#include "nearest.hpp"

#include <algorithm>
#include <numeric>

namespace holdfast::lab::cli {
namespace {

std::size_t distance(std::string_view one, std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < one.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < other.size(); ++j) {
            const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
    const auto best = std::min_element(
        candidates.begin(), candidates.end(),
        [&](auto one, auto other) { return distance(word, one) < distance(word, other); });
    return best == candidates.end() ? std::string() : std::string(*best);
}

}  // namespace holdfast::lab::cli
