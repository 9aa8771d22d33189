// Names and other text from elsewhere, made safe for a terminal, a log and a protocol: what core
// and the command write alike.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/export.hpp"

namespace holdfast::spi {

/// A name as a person may see it, without quotes: control characters, bytes that are not UTF-8,
/// marks that are invisible or turn the direction of the text, quotation marks and backslashes are
/// escaped.
HOLDFAST_EXPORT std::string escaped_name(std::string_view);
/// The same with quotation marks around it; what is longer than 120 bytes ends in "...".
HOLDFAST_EXPORT std::string quoted_name(std::string_view);
/// As escaped_name, but ends of lines, quotation marks and backslashes stay.
HOLDFAST_EXPORT std::string escaped_text(std::string_view);
/// Valid UTF-8: bytes that are none become U+FFFD.
HOLDFAST_EXPORT std::string clean_utf8(std::string_view);

}  // namespace holdfast::spi
