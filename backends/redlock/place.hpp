// What the backend remembers of one acquisition, from its first round to the end of its grant.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/spi/backend.hpp"

namespace holdfast::redlock {

/// The value of a lock's key is the owner id in an acquisition's first round, and the owner id with
/// "#2", "#3", ... in later ones: what an earlier round left under way, a request or its undoing,
/// can then never touch a later one.
struct Place {
    // Written before the grant is seen, read afterwards.
    unsigned rounds = 0;
    std::string value;  ///< of the round that may have left something; empty: none has

    // A bit for each node where a request of the last round, or a repair, may still arrive until
    // then: there a release is sent once more. Written by the engine while a lane may read.
    std::atomic<std::uint32_t> loose{0};
    std::atomic<boot_clock::time_point> loose_until{boot_clock::time_point::min()};

    void begin(std::string_view owner) {
        ++rounds;
        value.assign(owner);
        if (rounds > 1) value += "#" + std::to_string(rounds);
        loose = 0;
    }
    void may_arrive(unsigned node, boot_clock::time_point until) noexcept {
        loose_until.store(std::max(loose_until.load(), until));
        loose.fetch_or(1U << node);
    }
    void arrived(unsigned node) noexcept { loose.fetch_and(~(1U << node)); }
    /// Until when; the past when nothing of ours is under way to that node.
    boot_clock::time_point under_way(unsigned node) const noexcept {
        if ((loose.load() >> node & 1U) == 0) return boot_clock::time_point::min();
        return loose_until.load();
    }
};

inline Place& place_of(std::shared_ptr<void>& p) {
    if (!p) p = std::make_shared<Place>();
    return *static_cast<Place*>(p.get());
}
inline Place* find_place(const std::shared_ptr<void>& p) noexcept {
    return static_cast<Place*>(p.get());
}

/// The owner id in a key's value; `revoked` when it was broken.
inline std::string_view owner_in(std::string_view value, bool* revoked = nullptr) noexcept {
    const bool marked = value.starts_with('!');
    if (revoked != nullptr) *revoked = marked;
    if (marked) value.remove_prefix(1);
    return value.substr(0, value.find('#'));
}

}  // namespace holdfast::redlock
