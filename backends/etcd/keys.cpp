#include "keys.hpp"

#include "holdfast/spi/net/percent.hpp"

namespace holdfast::etcd {
namespace {

constexpr std::string_view alive = "hf1 ", revoked = "hf1! ";
constexpr std::string_view hex = "0123456789ABCDEF";

std::string escape(std::string_view name) {
    std::string out;
    out.reserve(name.size() + 8);
    for (const char c : name) {
        if (c < ' ' || c > '~' || c == '/' || c == '%')
            spi::net::append_percent(out, c);
        else
            out += c;
    }
    return out;
}

std::optional<std::string> unescape(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size()) return std::nullopt;
        const auto high = hex.find(text[i + 1]), low = hex.find(text[i + 2]);
        if (high == hex.npos || low == hex.npos) return std::nullopt;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

}  // namespace

std::string line_of(const Options& o, std::string_view name) {
    return o.root + escape(o.prefix) + escape(name) + "/";
}

std::optional<std::string> name_of(const Options& o, std::string_view key) {
    if (!key.starts_with(o.root)) return std::nullopt;
    key.remove_prefix(o.root.size());
    const auto end = key.find('/');
    if (end == key.npos || key.find('/', end + 1) != key.npos) return std::nullopt;
    auto full = unescape(key.substr(0, end));
    if (!full || !full->starts_with(o.prefix)) return std::nullopt;
    return full->substr(o.prefix.size());
}

std::string names_from(const Options& o, std::string_view prefix) {
    return o.root + escape(o.prefix) + escape(prefix);
}

// No name is escaped to this.
std::string grave_of(const Options& o, std::string_view owner) {
    return o.root + "%gone/" + std::string(owner);
}

std::string after(std::string prefix) {
    prefix.back() = static_cast<char>(prefix.back() + 1);  // of '/' or printable: never the last
    return prefix;
}

std::string write_entry(std::string_view owner, bool is_revoked) {
    return std::string(is_revoked ? revoked : alive) + std::string(owner);
}

std::optional<Entry> read_entry(std::string_view value) {
    for (const bool is_revoked : {false, true}) {
        const std::string_view mark = is_revoked ? revoked : alive;
        if (value.starts_with(mark) && value.size() > mark.size())
            return Entry{std::string(value.substr(mark.size())), is_revoked};
    }
    return std::nullopt;
}

}  // namespace holdfast::etcd
