// What an option takes, and the sentence for what it does not take. The parser puts the option's
// name before it.
#include "option_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <string_view>

#include "message.hpp"

namespace holdfast::cli {

CLI::Validator number(std::uint64_t least, std::uint64_t most) {
    return CLI::Validator(
        [least, most](std::string& text) -> std::string {
            // std::from_chars takes neither a sign nor a prefix; the parser's conversion takes
            // both.
            std::uint64_t value = 0;
            const char* const end = text.data() + text.size();
            const auto [stopped, fault] = std::from_chars(text.data(), end, value);
            if (fault == std::errc() && stopped == end && value >= least && value <= most) {
                text = std::to_string(value);  // "010" is ten
                return {};
            }
            const bool open = most == std::numeric_limits<std::uint64_t>::max();
            return fmt::format("takes a decimal number from {}{}, not {}", least,
                               open ? std::string() : fmt::format(" to {}", most), in_quotes(text));
        },
        "");
}

CLI::Validator one_of(std::vector<std::string> words) {
    // Its name is shown nowhere, and can be read again.
    std::string name = fmt::format("{}", fmt::join(words, " "));
    return CLI::Validator(
        [words = std::move(words)](std::string& text) -> std::string {
            if (std::find(words.begin(), words.end(), text) != words.end()) return {};
            std::string all;
            for (const std::string& w : words)
                all += (all.empty() ? "" : &w == &words.back() ? " or " : ", ") + w;
            return fmt::format("takes {}, not {}", all, in_quotes(text));
        },
        "", std::move(name));
}

std::vector<std::string> words_of(CLI::Option& option) {
    std::istringstream name;
    try {
        name.str(option.get_validator(0)->get_name());
    } catch (const CLI::OptionNotFound&) {
        return {};
    }
    return {std::istream_iterator<std::string>(name), {}};
}

}  // namespace holdfast::cli
