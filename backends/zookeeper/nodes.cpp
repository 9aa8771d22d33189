#include "nodes.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <system_error>

#include "holdfast/spi/bounded_time.hpp"
#include "holdfast/spi/net/percent.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr long long longest_ms = milliseconds(spi::longest_length).count();

constexpr std::string_view data_mark = "hf1 ", own_mark = "_hf_", hex_digits = "0123456789abcdef";

struct Ending {
    std::string_view text;
    Recipe recipe;
};
constexpr std::array<Ending, 7> endings{{{"lock-", Recipe::mutex},
                                         {"latch-", Recipe::latch},
                                         {"__WRIT__", Recipe::writer},
                                         {"__READ__", Recipe::reader},
                                         {"__lock__", Recipe::kazoo_writer},
                                         {"__rlock__", Recipe::kazoo_reader},
                                         {"-lease-", Recipe::permit}}};
constexpr std::string_view revoked_word = "revoked", shared_word = "shared", asked_word = "asked",
                           delay_word = "delay=", permits_word = "permits=";

template <class Number>
bool read_number(std::string_view text, Number& out) noexcept {
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, out);
    return error == std::errc() && end == last && out > 0;
}

}  // namespace

std::string escape(std::string_view name, bool at_root) {
    const bool kept = name == "." || name == ".." || name.starts_with(own_mark) ||
                      (at_root && name == "zookeeper");
    std::string out;
    if (kept) spi::net::append_percent(out, name.front());
    spi::net::append_component(out, kept ? name.substr(1) : name);
    // "..": both, since "%2E." would do but looks like an accident.
    if (name == "..") out = "%2E%2E";
    return out;
}

std::optional<std::string> unescape(std::string_view component) {
    if (component.starts_with(own_mark)) return std::nullopt;
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
    std::string out;
    out.reserve(36);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
        out += hex_digits[bytes[i] >> 4U];
        out += hex_digits[bytes[i] & 15U];
    }
    return out;
}

std::string node_prefix(std::string_view guid, Recipe recipe) {
    std::string out = "_c_";
    out += guid;
    out += '-';
    for (const Ending& e : endings)
        if (e.recipe == recipe) out += e.text.starts_with('-') ? e.text.substr(1) : e.text;
    return out;
}

std::optional<Rank> rank_of(std::string_view node) noexcept {
    for (const Ending& e : endings) {
        const std::size_t at = node.rfind(e.text);
        if (at == node.npos) continue;
        std::string_view digits = node.substr(at + e.text.size());
        const bool downgraded = e.recipe == Recipe::reader && digits.size() == 20 &&
                                digits.find_first_not_of("0123456789") == digits.npos;
        if (downgraded) digits = digits.substr(0, 10);
        if (digits.size() < 10 || digits.size() > 11) return std::nullopt;
        Rank r{0, e.recipe};
        const char* const last = digits.data() + digits.size();
        const auto [end, error] = std::from_chars(digits.data(), last, r.sequence);
        if (error != std::errc() || end != last) return std::nullopt;
        return r;
    }
    return std::nullopt;
}

bool stands_in_line(std::string_view node) noexcept {
    const auto rank = rank_of(node);
    return rank && rank->recipe != Recipe::permit;
}

std::optional<std::int32_t> sequence_of(std::string_view node) noexcept {
    const auto rank = rank_of(node);
    if (!rank) return std::nullopt;
    return rank->sequence;
}

bool is_unique(std::int32_t sequence) noexcept {
    return sequence >= 0 && sequence < std::numeric_limits<std::int32_t>::max();
}

bool made_by(std::string_view node, std::string_view guid) noexcept {
    return node.starts_with("_c_") && node.substr(3).starts_with(guid) &&
           node.substr(3 + guid.size()).starts_with('-');
}

std::string guid_of(std::string_view node) {
    constexpr std::string_view mark = "_c_";
    constexpr std::size_t length = 36;
    const bool has = node.starts_with(mark) && node.size() > mark.size() + length;
    return std::string(has ? node.substr(mark.size(), length) : node);
}

bool is_stranger(std::string_view node, bool among_permits) noexcept {
    if (const auto rank = rank_of(node)) return (rank->recipe == Recipe::permit) != among_permits;
    // A base below another one's name: its sessions' heartbeats.
    return node != permits_folder && node != turns_folder && !node.starts_with(own_mark);
}

std::string words_for_stranger(std::string_view path) {
    const std::string_view node = path.substr(path.rfind('/') + 1);
    const bool kazoos = node.size() == 32 && node.find_first_not_of(hex_digits) == node.npos;
    std::string out = "the node " + std::string(path) + " is of another layout";
    if (kazoos) out += ", as a lease of kazoo's Semaphore is";
    out += "; its client does not wait for Holdfast: end that client first";
    return out;
}

std::string limit_text(std::uint32_t limit) {
    return '-' + std::to_string(limit);
}

std::optional<std::uint32_t> read_limit(std::string_view text) noexcept {
    std::uint32_t limit = 0;
    if (!text.starts_with('-') || !read_number(text.substr(1), limit)) return std::nullopt;
    return limit;
}

std::string write_data(const NodeData& d) {
    std::string out(data_mark);
    out += std::to_string(d.ttl_ms);
    out += ' ';
    out += d.owner;
    const auto add = [&](bool so, std::string_view word) {
        if (so) (out += ' ') += word;
    };
    add(d.revoked, revoked_word);
    add(d.shared, shared_word);
    add(d.asked, asked_word);
    add(d.delay_ms > 0, delay_word);
    if (d.delay_ms > 0) out += std::to_string(d.delay_ms);
    add(d.permits > 0, permits_word);
    if (d.permits > 0) out += std::to_string(d.permits);
    return out;
}

std::optional<NodeData> read_data(std::string_view text) {
    if (!text.starts_with(data_mark)) return std::nullopt;
    text.remove_prefix(data_mark.size());
    NodeData d;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d.ttl_ms);
    if (error != std::errc() || d.ttl_ms < 0 || d.ttl_ms > longest_ms) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with(' ')) return std::nullopt;
    text.remove_prefix(1);
    const auto next_word = [&] {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
        return word;
    };
    d.owner = next_word();
    if (d.owner.empty()) return std::nullopt;
    while (!text.empty()) {
        const std::string_view word = next_word();
        if (word == revoked_word) {
            d.revoked = true;
        } else if (word == shared_word) {
            d.shared = true;
        } else if (word == asked_word) {
            d.asked = true;
        } else if (word.starts_with(delay_word)) {
            if (!read_number(word.substr(delay_word.size()), d.delay_ms) || d.delay_ms > longest_ms)
                return std::nullopt;
        } else if (word.starts_with(permits_word)) {
            if (!read_number(word.substr(permits_word.size()), d.permits)) return std::nullopt;
        } else {
            return std::nullopt;
        }
    }
    return d;
}

}  // namespace holdfast::zookeeper
