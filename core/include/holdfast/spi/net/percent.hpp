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

/// The text of such a component; nullopt when an escape in it is invalid.
inline std::optional<std::string> read_component(std::string_view component) {
    std::string out;
    for (std::size_t i = 0; i < component.size(); ++i) {
        if (component[i] != '%') {
            out += component[i];
            continue;
        }
        if (i + 2 >= component.size()) return std::nullopt;
        const auto high = percent_digits.find(component[i + 1]);
        const auto low = percent_digits.find(component[i + 2]);
        if (high == percent_digits.npos || low == percent_digits.npos) return std::nullopt;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

}  // namespace holdfast::spi::net
