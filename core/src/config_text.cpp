// Small text helpers of the configuration.
#include "config_text.hpp"

#include <algorithm>
#include <boost/url/pct_string_view.hpp>
#include <cstdlib>

namespace holdfast::config {
namespace {

constexpr std::string_view hex = "0123456789ABCDEF";
constexpr std::size_t longest_quote = 60;

unsigned byte(char c) {
    return static_cast<unsigned char>(c);
}

}  // namespace

bool has_control(std::string_view text) {
    return std::any_of(text.begin(), text.end(), is_control);
}

bool valid_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const unsigned lead = byte(text[i]);
        const std::size_t size = lead < 0x80   ? 1
                                 : lead < 0xC2 ? 0
                                 : lead < 0xE0 ? 2
                                 : lead < 0xF0 ? 3
                                 : lead < 0xF5 ? 4
                                               : 0;
        if (size == 0 || i + size > text.size()) return false;
        unsigned code = size == 1 ? lead : lead & (0x7FU >> size);
        for (std::size_t k = 1; k < size; ++k) {
            const unsigned next = byte(text[i + k]);
            if ((next & 0xC0U) != 0x80U) return false;
            code = code << 6U | (next & 0x3FU);
        }
        const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
        if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
        i += size;
    }
    return true;
}

std::optional<std::string> decode_percent(std::string_view text) {
    const auto checked =
        boost::urls::make_pct_string_view(boost::urls::string_view(text.data(), text.size()));
    if (!checked) return std::nullopt;
    return checked->decode();
}

void append_percent(std::string& out, char c) {
    out += '%';
    out += hex[byte(c) >> 4U];
    out += hex[byte(c) & 15U];
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
