// What a Redis Cluster says of itself, without sockets: the slot of a key, where a redirection
// leads, and which server has which slot. Source: Redis' cluster specification, and the replies of
// CLUSTER SLOTS and CLUSTER NODES.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../resp/codec.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::redis {

inline constexpr std::size_t slot_count = 16384;
using Slot = std::uint16_t;

/// The slot of a key: by its {tag}, where it has one that is not empty.
Slot slot_of(std::string_view key) noexcept;

/// MOVED: another server has the slot from now on. ASK: this request alone, with ASKING before it.
struct Redirect {
    bool once = false;  ///< ASK
    Slot slot = 0;
    spi::Endpoint to;  ///< an empty host: the one of the server that said it
};
/// Nullopt: the error is no such one, or malformed.
std::optional<Redirect> redirect_of(std::string_view error);

/// Adjacent slots of one primary.
struct SlotRange {
    Slot first = 0, last = 0;
    spi::Endpoint primary;
    std::string id;  ///< of the primary
    std::size_t replicas = 0;
};
/// A reply to CLUSTER SLOTS; `asked`: the host that replied, which an empty address means. Nullopt:
/// it is malformed.
std::optional<std::vector<SlotRange>> ranges_of(const resp::Reply&, const std::string& asked);

/// A text of CLUSTER NODES: by the id of each primary the epoch of its configuration, which is
/// higher at one that takes over. Ignores lines that it cannot read.
std::map<std::string, std::uint64_t, std::less<>> epochs_of(std::string_view nodes);
/// Slots that are being moved to or from the server that answers it.
std::size_t moving_slots_of(std::string_view nodes);

/// What one server has said.
struct ClusterView {
    std::vector<SlotRange> ranges;
    std::map<std::string, std::uint64_t, std::less<>> epochs;
};
/// By slot the index of its primary in `primaries`.
struct SlotTable {
    static constexpr std::uint16_t none = 0xFFFF;
    std::vector<spi::Endpoint> primaries;
    std::array<std::uint16_t, slot_count> owner;
    bool whole = false;  ///< each slot has a primary
};
/// Of several claims to a slot the one with the highest epoch counts: what a server says that has
/// not heard of a take-over does not count beside what others say.
SlotTable merged(std::span<const ClusterView>);

}  // namespace holdfast::redis
