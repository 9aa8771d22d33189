#include "holdfast/spi/safe_text.hpp"

#include <charconv>

#include "config/text.hpp"

namespace holdfast::spi {
namespace {

/// The code point of a well-formed sequence.
char32_t decoded(std::string_view sequence) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
    if (sequence.size() == 1) return byte(0);
    char32_t c = byte(0) & (0x7FU >> sequence.size());
    for (std::size_t i = 1; i < sequence.size(); ++i)
        c = (c << 6U) | (byte(i) & 0x3FU);
    return c;
}

bool harmless(char32_t c) noexcept {
    if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return false;
    return c != 0x61C && !(c >= 0x200B && c <= 0x200F) && !(c >= 0x2028 && c <= 0x202E) &&
           !(c >= 0x2060 && c <= 0x206F) && c != 0xFEFF;
}

void append_hex(std::string& out, std::uint32_t number, std::size_t digits) {
    char text[8];
    const auto end = std::to_chars(text, text + sizeof text, number, 16).ptr;
    const auto size = static_cast<std::size_t>(end - text);
    if (size < digits) out.append(digits - size, '0');
    out.append(text, size);
}

enum class Style : unsigned char { name, text, json };

std::string escaped(std::string_view text, Style style) {
    const bool name = style == Style::name;
    std::string out;
    while (!text.empty()) {
        const std::size_t size = config::utf8_sequence(text);
        if (size == 0) {
            out += style == Style::json ? "\\u00" : "\\x";
            append_hex(out, static_cast<unsigned char>(text.front()), 2);
            text.remove_prefix(1);
            continue;
        }
        const std::string_view one = text.substr(0, size);
        const char32_t c = decoded(one);
        if (c == U'\\' || c == U'"') {
            if (name) out += '\\';
            out += one;
        } else if (harmless(c) || (c == U'\n' && !name)) {
            out += one;
        } else if (c == U'\n') {
            out += "\\n";
        } else if (c == U'\t') {
            out += "\\t";
        } else if (style == Style::json) {
            out += "\\u";
            append_hex(out, c, 4);
        } else {
            out += "\\u{";
            append_hex(out, c, 1);
            out += '}';
        }
        text.remove_prefix(size);
    }
    return out;
}

}  // namespace

std::string escaped_name(std::string_view name) {
    return escaped(name, Style::name);
}

std::string quoted_name(std::string_view name) {
    constexpr std::size_t most = 120;
    std::string text = escaped_name(name);
    if (text.size() > most) {
        std::size_t cut = most;
        while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80)
            --cut;
        text = text.substr(0, cut) + "...";
    }
    return '"' + text + '"';
}

std::string escaped_text(std::string_view text) {
    return escaped(text, Style::text);
}

std::string escaped_json(std::string_view serialized) {
    return escaped(serialized, Style::json);
}

std::string clean_utf8(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t size = config::utf8_sequence(text);
        if (size == 0)
            out += "\xEF\xBF\xBD";
        else
            out += text.substr(0, size);
        text.remove_prefix(size == 0 ? 1 : size);
    }
    return out;
}

}  // namespace holdfast::spi
