// Text helpers of the configuration: escapes, lists, quoting for messages, the environment.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/spi/net/percent.hpp"

namespace holdfast::config {

/// True for bytes that must not reach a terminal, a key or a path.
constexpr bool is_control(char c) noexcept {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
bool has_control(std::string_view);
bool valid_utf8(std::string_view);
/// Length of the well-formed UTF-8 sequence at the front (Unicode table 3-7); 0: there is none.
std::size_t utf8_sequence(std::string_view) noexcept;

/// "%41" to "A"; nullopt when an escape is malformed.
std::optional<std::string> decode_percent(std::string_view);
using spi::net::append_percent;
/// Escapes what is not valid in the path of a URL.
std::string encode_path(std::string_view);

/// "true", "on", "yes", "1" and their opposites; nullopt for other words.
std::optional<bool> boolean(std::string_view);
/// Comma-separated, without blanks around the items. An empty text has no items.
std::vector<std::string> split_list(std::string_view);
std::vector<std::string> split(std::string_view, char separator);
std::string join(const std::vector<std::string>&, std::string_view separator);

/// For messages: in double quotes, shortened, with unprintable bytes escaped.
std::string in_quotes(std::string_view);
/// Makes foreign text safe for a terminal and a log: control characters, overrides of the text
/// direction and bytes that are not UTF-8 become '?', line ends and tabs become blanks, and a text
/// longer than 4096 bytes ends in "...".
std::string printable(std::string);
/// Value of an environment variable; empty when it is not set.
std::string environment(const char* name);

}  // namespace holdfast::config
