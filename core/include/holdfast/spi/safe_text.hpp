// Makes names and other foreign text safe for a terminal, a log and a protocol, for core and the
// command alike.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/export.hpp"

namespace holdfast::spi {

/// A name for people, without quotes. Escapes control characters, bytes that are not UTF-8,
/// characters that are invisible or change the direction of text, quotation marks and backslashes.
HOLDFAST_EXPORT std::string escaped_name(std::string_view);
/// As escaped_name, in quotation marks; a text longer than 120 bytes ends in "...".
HOLDFAST_EXPORT std::string quoted_name(std::string_view);
/// As escaped_name, but keeps line ends, quotation marks and backslashes.
HOLDFAST_EXPORT std::string escaped_text(std::string_view);
/// Of serialized JSON, which is UTF-8: the same values. Characters that escaped_name would escape
/// are written as JSON writes control characters, by their number.
HOLDFAST_EXPORT std::string escaped_json(std::string_view serialized);
/// Valid UTF-8: replaces other bytes by U+FFFD.
HOLDFAST_EXPORT std::string clean_utf8(std::string_view);

}  // namespace holdfast::spi
