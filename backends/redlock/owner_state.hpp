// The backend's data about one acquisition, from its first round to the end of its grant.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "../resp/poll_mark.hpp"
#include "holdfast/spi/backend.hpp"

namespace holdfast::redlock {

/// The value of a lock's key is the owner id, in later rounds of an acquisition with "#2", "#3",
/// ... appended. So what an earlier round left under way, a request or its undoing, can never
/// affect a later one.
struct OwnerState {
    static constexpr auto never = boot_clock::time_point::min();

    // Written before the grant is seen, then only read.
    unsigned rounds = 0;
    std::string value;  ///< of the round that may have left something; empty: none
    /// When its first request was sent, by the nodes' time in us and by ours; 0: not known yet.
    std::uint64_t ticket = 0;
    boot_clock::time_point since{};
    std::string marked;  ///< the mark that may be at some node; empty: none
    resp::PollMark mark;
    /// One bit per node that has said, since the last request, that it is its turn. Engine only.
    std::uint32_t told = 0;
    /// The name stays closed until then, even after a release.
    boot_clock::time_point closed_until = never;
    /// It has met readers or their marks, so it asks with units.
    std::atomic<bool> units{false};

    // One bit per node where a request of the last round, or a repair by a renewal, may still
    // arrive until then; a release is sent there once more. Written by the engine while a lane may
    // read.
    std::atomic<std::uint32_t> loose{0}, repairs{0};
    std::atomic<boot_clock::time_point> until{boot_clock::time_point::min()};

    /// Being released: no repair from here on. A repair first sets its bit in `repairs` and then
    /// reads this; a release first sets this and then reads `repairs`.
    std::atomic<bool> leaving{false};

    void begin(std::string_view owner) {
        ++rounds;
        value.assign(owner);
        if (rounds > 1) value += "#" + std::to_string(rounds);
        loose = 0;
        repairs = 0;
    }
    static void may_arrive(OwnerState& p, std::atomic<std::uint32_t>& which, std::size_t node,
                           boot_clock::time_point deadline) noexcept {
        p.until.store(std::max(p.until.load(), deadline));
        which.fetch_or(1U << node);
    }
    static void arrived(std::atomic<std::uint32_t>& which, std::size_t node) noexcept {
        which.fetch_and(~(1U << node));
    }
    /// Until when a request of ours is under way to that node; the past: none is. `in_order`: what
    /// is sent now comes after the round's own request.
    boot_clock::time_point under_way(std::size_t node, bool in_order = false) const noexcept {
        const std::uint32_t bits = repairs.load() | (in_order ? 0U : loose.load());
        return (bits >> node & 1U) == 0 ? boot_clock::time_point::min() : until.load();
    }
};

inline OwnerState& state_of(std::shared_ptr<void>& p) {
    if (!p) p = std::make_shared<OwnerState>();
    return *static_cast<OwnerState*>(p.get());
}
inline OwnerState* find_state(const std::shared_ptr<void>& p) noexcept {
    return static_cast<OwnerState*>(p.get());
}

/// Values of a lock's key that are not an owner: lua/units.lua.
inline constexpr std::string_view readers_value = "hf:s", closed_value = "hf:m";

/// The owner id in a key's value. `revoked`: whether it was broken.
inline std::string_view owner_in(std::string_view value, bool* revoked = nullptr) noexcept {
    const bool marked = value.starts_with('!');
    if (revoked != nullptr) *revoked = marked;
    if (marked) value.remove_prefix(1);
    return value.substr(0, value.find('#'));
}

}  // namespace holdfast::redlock
