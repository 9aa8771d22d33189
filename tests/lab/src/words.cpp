// from_chars rather than streams, because a trailing letter must make a number wrong.
#include "words.hpp"

#include <charconv>

namespace holdfast::lab::detail {

std::vector<std::string> words_of(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    std::vector<std::string> words;
    for (auto begin = text.find_first_not_of(blanks); begin != std::string_view::npos;) {
        const auto end = text.find_first_of(blanks, begin);
        words.emplace_back(text.substr(begin, end - begin));
        begin = end == std::string_view::npos ? end : text.find_first_not_of(blanks, end);
    }
    return words;
}

std::optional<std::uint64_t> number_of(std::string_view word) {
    std::uint64_t number = 0;
    const auto* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, number);
    if (word.empty() || error != std::errc() || stop != end) {
        return std::nullopt;
    }
    return number;
}

}  // namespace holdfast::lab::detail
