#include "nodes.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <system_error>

#include "holdfast/spi/net/percent.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr std::string_view data_mark = "hf1 ";

}  // namespace

std::string escape(std::string_view name, bool at_root) {
    const bool kept =
        name == "." || name == ".." || name.starts_with("_hf_") || (at_root && name == "zookeeper");
    std::string out;
    if (kept) spi::net::append_percent(out, name.front());
    spi::net::append_component(out, kept ? name.substr(1) : name);
    // "..": both, since "%2E." would do but looks like an accident.
    if (name == "..") out = "%2E%2E";
    return out;
}

std::optional<std::string> unescape(std::string_view component) {
    if (component.starts_with("_hf_")) return std::nullopt;
    return spi::net::read_component(component);
}

std::string make_guid() {
    std::array<unsigned char, 16> bytes{};
    for (std::size_t have = 0; have < bytes.size();) {
        const ssize_t n = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
        if (n > 0)
            have += static_cast<std::size_t>(n);
        else if (errno != EINTR)
            throw std::system_error(errno, std::system_category(), "getrandom");
    }
    bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0FU) | 0x40U);
    bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3FU) | 0x80U);
    constexpr std::string_view small = "0123456789abcdef";
    std::string out;
    out.reserve(36);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
        out += small[bytes[i] >> 4U];
        out += small[bytes[i] & 15U];
    }
    return out;
}

std::string node_prefix(std::string_view guid) {
    std::string out = "_c_";
    out += guid;
    out += "-lock-";
    return out;
}

std::optional<std::int32_t> sequence_of(std::string_view node) noexcept {
    std::size_t at = node.rfind("lock-");
    if (at != node.npos) {
        at += 5;
    } else {
        at = node.rfind("__lock__");
        if (at == node.npos) return std::nullopt;
        at += 8;
    }
    const std::string_view digits = node.substr(at);
    if (digits.size() < 10 || digits.size() > 11) return std::nullopt;
    std::int32_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return n;
}

bool is_unique(std::int32_t sequence) noexcept {
    return sequence >= 0 && sequence < std::numeric_limits<std::int32_t>::max();
}

bool made_by(std::string_view node, std::string_view guid) noexcept {
    return node.starts_with("_c_") && node.substr(3).starts_with(guid) &&
           node.substr(3 + guid.size()).starts_with("-lock-");
}

std::string write_data(const NodeData& d) {
    std::string out(data_mark);
    out += std::to_string(d.ttl_ms);
    out += ' ';
    out += d.owner;
    if (d.revoked) out += " revoked";
    return out;
}

std::optional<NodeData> read_data(std::string_view text) {
    if (!text.starts_with(data_mark)) return std::nullopt;
    text.remove_prefix(data_mark.size());
    NodeData d;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d.ttl_ms);
    if (error != std::errc() || d.ttl_ms < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with(' ')) return std::nullopt;
    text.remove_prefix(1);
    const std::size_t space = text.find(' ');
    d.owner = text.substr(0, space);
    if (d.owner.empty()) return std::nullopt;
    if (space != text.npos) {
        if (text.substr(space + 1) != "revoked") return std::nullopt;
        d.revoked = true;
    }
    return d;
}

}  // namespace holdfast::zookeeper
