#include "keys.hpp"

namespace holdfast::resp {
namespace {

constexpr std::string_view mark = "}:hf:";

/// The part in braces by which Redis Cluster hashes, if the key has one.
std::string_view tag_of(std::string_view key) noexcept {
    const auto open = key.find('{');
    if (open == key.npos) return {};
    const auto close = key.find('}', open + 1);
    if (close == key.npos) return {};
    return key.substr(open + 1, close - open - 1);
}

}  // namespace

void sibling(std::string& out, std::string_view key, char which) {
    const std::string_view tag = tag_of(key);
    out.clear();
    out += '{';
    out += tag.empty() ? key : tag;
    out += mark;
    out += which;
    if (tag.empty()) return;
    out += ':';
    out += key;
}

std::string record_key(std::string_view prefix, std::string_view name) {
    std::string out;
    sibling(out, std::string(prefix).append(name), 'b');
    return out;
}

bool reserved(std::string_view prefix, std::string_view name) noexcept {
    if (name.find(mark) != name.npos || prefix.find(mark) != prefix.npos) return true;
    // It may straddle the two.
    for (std::size_t n = 1; n < mark.size(); ++n)
        if (prefix.ends_with(mark.substr(0, n)) && name.starts_with(mark.substr(n))) return true;
    return false;
}

std::string literal_pattern(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\' || c == '^') out += '\\';
        out += c;
    }
    return out;
}

}  // namespace holdfast::resp
