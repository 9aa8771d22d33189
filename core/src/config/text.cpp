// Text helpers of the configuration.
#include "config/text.hpp"

#include <algorithm>
#include <boost/url/pct_string_view.hpp>
#include <cstdlib>

namespace holdfast::config {
namespace {

constexpr std::string_view hex = "0123456789ABCDEF";
constexpr std::size_t longest_quote = 60, longest_text = 4096;

unsigned byte(char c) {
    return static_cast<unsigned char>(c);
}

}  // namespace

bool has_control(std::string_view text) {
    return std::any_of(text.begin(), text.end(), is_control);
}

std::size_t utf8_sequence(std::string_view s) noexcept {
    const auto at = [&](std::size_t i) { return byte(s[i]); };
    const auto tail = [&](std::size_t i) { return i < s.size() && (at(i) & 0xC0U) == 0x80U; };
    if (s.empty()) return 0;
    const unsigned c = at(0);
    if (c < 0x80) return 1;
    if (c >= 0xC2 && c <= 0xDF) return tail(1) ? 2 : 0;
    if (c >= 0xE0 && c <= 0xEF) {
        if (!tail(1) || !tail(2)) return 0;
        if (c == 0xE0 && at(1) < 0xA0) return 0;
        if (c == 0xED && at(1) > 0x9F) return 0;
        return 3;
    }
    if (c >= 0xF0 && c <= 0xF4) {
        if (!tail(1) || !tail(2) || !tail(3)) return 0;
        if (c == 0xF0 && at(1) < 0x90) return 0;
        if (c == 0xF4 && at(1) > 0x8F) return 0;
        return 4;
    }
    return 0;
}

bool valid_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t size = utf8_sequence(text.substr(i));
        if (size == 0) return false;
        i += size;
    }
    return true;
}

std::string printable(std::string text) {
    // U+0080 to U+009F are controls as well; U+202A to U+202E and U+2066 to U+2069 turn the
    // direction of the text.
    const auto shown = [](std::string_view one) {
        if (one.size() == 1) return !is_control(one[0]);
        if (one.size() == 2) return byte(one[0]) != 0xC2 || byte(one[1]) >= 0xA0;
        if (one.size() != 3 || byte(one[0]) != 0xE2) return true;
        const unsigned low = byte(one[2]);
        if (byte(one[1]) == 0x80) return low < 0xAA || low > 0xAE;
        return byte(one[1]) != 0x81 || low < 0xA6 || low > 0xA9;
    };
    std::string out;
    out.reserve(std::min(text.size(), longest_text) + 3);
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t size =
            std::max<std::size_t>(utf8_sequence(std::string_view(text).substr(i)), 1);
        const std::string_view one = std::string_view(text).substr(i, size);
        if (out.size() + size > longest_text) return out + "...";
        const bool broken = size == 1 && byte(one[0]) >= 0x80;
        if (one == "\n" || one == "\t" || one == "\r")
            out += ' ';
        else if (broken || !shown(one))
            out += '?';
        else
            out += one;
        i += size;
    }
    return out;
}

std::optional<std::string> decode_percent(std::string_view text) {
    const auto checked =
        boost::urls::make_pct_string_view(boost::core::string_view(text.data(), text.size()));
    if (!checked) return std::nullopt;
    return checked->decode();
}

std::string encode_path(std::string_view path) {
    std::string out;
    for (const char c : path)
        if (is_control(c) || c == ' ' || c == '%' || c == '?' || c == '#')
            append_percent(out, c);
        else
            out += c;
    return out;
}

std::optional<bool> boolean(std::string_view text) {
    for (const std::string_view word : {"true", "on", "yes", "1"})
        if (text == word) return true;
    for (const std::string_view word : {"false", "off", "no", "0"})
        if (text == word) return false;
    return std::nullopt;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

std::vector<std::string> split_list(std::string_view text) {
    if (text.empty()) return {};
    std::vector<std::string> items = split(text, ',');
    for (std::string& item : items) {
        const std::size_t first = item.find_first_not_of(" \t");
        const std::size_t last = item.find_last_not_of(" \t");
        item = first == std::string::npos ? std::string() : item.substr(first, last - first + 1);
    }
    return items;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
    std::string text;
    for (const std::string& part : parts) {
        if (!text.empty()) text += separator;
        text += part;
    }
    return text;
}

std::string in_quotes(std::string_view text) {
    const bool utf8 = valid_utf8(text);
    std::string out = "\"";
    std::size_t taken = 0;
    for (const char c : text) {
        const bool inside_character = utf8 && (byte(c) & 0xC0U) == 0x80U;
        if (taken++ >= longest_quote && !inside_character) {
            out += "...";
            break;
        }
        if (is_control(c) || (!utf8 && byte(c) >= 0x80)) {
            out += "\\x";
            out += hex[byte(c) >> 4U];
            out += hex[byte(c) & 15U];
        } else {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
    }
    return out + "\"";
}

std::string environment(const char* name) {
    const char* value = ::secure_getenv(name);
    return value ? value : "";
}

}  // namespace holdfast::config
