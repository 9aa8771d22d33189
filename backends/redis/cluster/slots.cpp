#include "slots.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::redis {
namespace {

using resp::number;
using resp::Reply;
using resp::word;

/// CRC16/XMODEM: polynomial 0x1021, from zero, nothing reflected.
constexpr std::array<std::uint16_t, 256> crc_table() {
    std::array<std::uint16_t, 256> table{};
    for (unsigned byte = 0; byte < table.size(); ++byte) {
        unsigned crc = byte << 8U;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
        table[byte] = static_cast<std::uint16_t>(crc);
    }
    return table;
}
constexpr auto table_of_crc = crc_table();

template <class Number>
bool read(std::string_view text, Number& into) noexcept {
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), into);
    return bad == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::optional<Slot> slot_from(const Reply& r) {
    if (!r.is(Reply::Type::integer) || r.integer < 0 ||
        r.integer >= static_cast<long long>(slot_count))
        return std::nullopt;
    return static_cast<Slot>(r.integer);
}

/// "ADDRESS, PORT, ID, ...": the address may be null or empty.
std::optional<spi::Endpoint> endpoint_from(const Reply& node, const std::string& asked) {
    const auto items = node.items();
    if (!node.is(Reply::Type::array) || items.size() < 2 || !items[1].is(Reply::Type::integer))
        return std::nullopt;
    const long long port = items[1].integer;
    if (port <= 0 || port > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
    // "?": the server is told to announce a host name, and has none.
    const bool named = items[0].is_text() && !items[0].text.empty() && items[0].text != "?";
    return spi::Endpoint{named ? items[0].text : asked, static_cast<std::uint16_t>(port)};
}

}  // namespace

Slot slot_of(std::string_view key) noexcept {
    if (const auto open = key.find('{'); open != key.npos) {
        const auto close = key.find('}', open + 1);
        if (close != key.npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
    }
    unsigned crc = 0;
    for (const char c : key)
        crc = (crc << 8U) ^ table_of_crc[((crc >> 8U) ^ static_cast<unsigned char>(c)) & 0xFFU];
    return static_cast<Slot>(crc % slot_count);
}

std::optional<Redirect> redirect_of(std::string_view error) {
    const std::string_view what = word(error);
    Redirect found;
    found.once = what == "ASK";
    if (!found.once && what != "MOVED") return std::nullopt;
    if (!read(word(error), found.slot) || found.slot >= slot_count) return std::nullopt;
    // "HOST:PORT"; an address of IPv6 stands without brackets.
    const std::string_view place = word(error);
    const auto colon = place.rfind(':');
    if (colon == place.npos || !read(place.substr(colon + 1), found.to.port) || found.to.port == 0)
        return std::nullopt;
    found.to.host = place.substr(0, colon);
    if (found.to.host == "?") found.to.host.clear();
    return found;
}

std::optional<std::vector<SlotRange>> ranges_of(const Reply& reply, const std::string& asked) {
    if (!reply.is(Reply::Type::array)) return std::nullopt;
    std::vector<SlotRange> all;
    for (const Reply& row : reply.items()) {
        const auto items = row.items();
        if (!row.is(Reply::Type::array) || items.size() < 3) return std::nullopt;
        const auto first = slot_from(items[0]), last = slot_from(items[1]);
        const auto primary = endpoint_from(items[2], asked);
        if (!first || !last || *first > *last || !primary) return std::nullopt;
        const auto node = items[2].items();
        all.push_back({*first, *last, *primary,
                       node.size() > 2 && node[2].is_text() ? node[2].text : std::string(),
                       items.size() - 3});
    }
    return all;
}

std::map<std::string, std::uint64_t, std::less<>> epochs_of(std::string_view nodes) {
    std::map<std::string, std::uint64_t, std::less<>> all;
    while (!nodes.empty()) {
        const auto end = nodes.find('\n');
        std::string_view line = nodes.substr(0, end);
        nodes.remove_prefix(end == nodes.npos ? nodes.size() : end + 1);
        // ID ADDRESS FLAGS PRIMARY PING PONG EPOCH LINK SLOT...
        const std::string_view id = word(line);
        word(line);
        const std::string_view flags = word(line);
        for (int skipped = 0; skipped < 3; ++skipped)
            word(line);
        std::uint64_t epoch = 0;
        if (flags.find("master") != flags.npos && read(word(line), epoch))
            all.insert_or_assign(std::string(id), epoch);
    }
    return all;
}

std::size_t moving_slots_of(std::string_view nodes) {
    // "[93->-ID]" to another server, "[93-<-ID]" from one; only in the line of the one that says
    // it.
    std::size_t n = 0;
    for (auto at = nodes.find(" ["); at != nodes.npos; at = nodes.find(" [", at + 2))
        ++n;
    return n;
}

SlotTable merged(std::span<const ClusterView> views) {
    SlotTable table;
    table.owner.fill(SlotTable::none);
    std::vector<std::uint64_t> best(slot_count, 0);
    const auto index_of = [&](const spi::Endpoint& e) {
        auto& all = table.primaries;
        const auto at = std::find(all.begin(), all.end(), e) - all.begin();
        if (static_cast<std::size_t>(at) == all.size()) all.push_back(e);
        return static_cast<std::uint16_t>(at);
    };
    for (const ClusterView& view : views)
        for (const SlotRange& range : view.ranges) {
            const auto known = view.epochs.find(range.id);
            const std::uint64_t epoch = known == view.epochs.end() ? 0 : known->second;
            std::optional<std::uint16_t> owner;
            for (std::size_t s = range.first; s <= range.last; ++s) {
                if (table.owner[s] != SlotTable::none && epoch <= best[s]) continue;
                if (!owner) owner = index_of(range.primary);
                table.owner[s] = *owner;
                best[s] = epoch;
            }
        }
    // Those whose every claim was outdone have none.
    std::vector<bool> used(table.primaries.size(), false);
    table.whole = true;
    for (const std::uint16_t owner : table.owner) {
        if (owner == SlotTable::none)
            table.whole = false;
        else
            used[owner] = true;
    }
    std::vector<spi::Endpoint> left;
    std::vector<std::uint16_t> now(table.primaries.size(), SlotTable::none);
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (!used[i]) continue;
        now[i] = static_cast<std::uint16_t>(left.size());
        left.push_back(std::move(table.primaries[i]));
    }
    for (std::uint16_t& owner : table.owner)
        if (owner != SlotTable::none) owner = now[owner];
    table.primaries = std::move(left);
    return table;
}

}  // namespace holdfast::redis
