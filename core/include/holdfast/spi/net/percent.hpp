// Percent-encoding, as URLs, owner ids, ZooKeeper's nodes and etcd's keys have it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::spi::net {

inline constexpr std::string_view percent_digits = "0123456789ABCDEF";

/// "%2F" for '/'.
inline void append_percent(std::string& out, char c) {
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += percent_digits[byte >> 4U];
    out += percent_digits[byte & 15U];
}

/// One component of a path: escapes all but printable ASCII, and '/' and '%'.
inline void append_component(std::string& out, std::string_view text) {
    out.reserve(out.size() + text.size() + 8);
    for (const char c : text) {
        if (c < ' ' || c > '~' || c == '/' || c == '%')
            append_percent(out, c);
        else
            out += c;
    }
}

/// What the escape stands for that the text begins with; nullopt: it begins with none.
inline std::optional<char> read_percent(std::string_view text) {
    if (text.size() < 3 || text[0] != '%') return std::nullopt;
    const auto high = percent_digits.find(text[1]), low = percent_digits.find(text[2]);
    if (high == percent_digits.npos || low == percent_digits.npos) return std::nullopt;
    return static_cast<char>(high * 16 + low);
}

/// The text with its escapes read; what is no escape stays as it is.
inline std::string read_escapes(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto escaped = read_percent(text);
        out += escaped.value_or(text.front());
        text.remove_prefix(escaped ? 3 : 1);
    }
    return out;
}

/// The text of a component; nullopt when an escape in it is invalid.
inline std::optional<std::string> read_component(std::string_view component) {
    for (auto at = component.find('%'); at != component.npos; at = component.find('%', at + 1))
        if (!read_percent(component.substr(at))) return std::nullopt;
    return read_escapes(component);
}

}  // namespace holdfast::spi::net
