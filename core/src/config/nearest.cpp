// Finds the word that a user probably meant, for error texts.
#include <algorithm>
#include <cstddef>

#include "holdfast/spi/reference.hpp"

namespace holdfast::spi {
namespace {

constexpr std::size_t longest = 64;  // nobody mistypes more, and the cost grows with the square

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Insertions, deletions, replacements and swaps of neighbours, capital letters counting as small.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> two_back(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        now[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
            const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                                 lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped) now[j] = std::min(now[j], two_back[j - 2] + 1);
        }
        two_back.swap(last);
        last.swap(now);
    }
    return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
    if (word.empty() || word.size() > longest) return {};
    std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
    std::string found;
    for (const std::string& candidate : candidates) {
        if (candidate.empty() || candidate.size() > longest) continue;
        const std::size_t d = distance(word, candidate);
        if (d >= best) continue;
        best = d;
        found = candidate;
    }
    return found;
}

}  // namespace holdfast::spi
