#include "keys.hpp"

#include "holdfast/spi/net/percent.hpp"

namespace holdfast::etcd {
namespace {

constexpr std::string_view alive = "hf1 ", revoked = "hf1! ";
}  // namespace

std::string line_of(const Options& o, std::string_view name) {
    return names_from(o, name) + "/";
}

std::optional<std::string> name_of(const Options& o, std::string_view key) {
    if (!key.starts_with(o.root)) return std::nullopt;
    key.remove_prefix(o.root.size());
    const auto end = key.find('/');
    if (end == key.npos || key.find('/', end + 1) != key.npos) return std::nullopt;
    auto full = spi::net::read_component(key.substr(0, end));
    if (!full || !full->starts_with(o.prefix)) return std::nullopt;
    return full->substr(o.prefix.size());
}

std::string names_from(const Options& o, std::string_view prefix) {
    std::string out = o.root;
    spi::net::append_component(out, o.prefix);
    spi::net::append_component(out, prefix);
    return out;
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
