// What the backend remembers of one acquisition, from its first look to the end of its grant.
#pragma once
#include <algorithm>
#include <optional>
#include <string>

#include "../../resp/poll_mark.hpp"
#include "../shared.hpp"
#include "holdfast/spi/backend.hpp"

namespace holdfast::redis {

/// Written on the engine thread; by a lane only before the engine has seen it.
struct OwnerState {
    std::int64_t ghost = 0;       ///< until when an unanswered request may still arrive, server ms
    bool unanswered = false;      ///< a request of this owner may have taken the lock unknown to us
    std::string ticket;           ///< the place in line
    bool queued = false;          ///< a look was answered "queued": the next three belong to it
    std::uint64_t seen = 0;       ///< the number of the last grant at that look
    boot_clock::time_point base;  ///< when that look was sent
    milliseconds window{};        ///< for how long a hand-over holds

    bool units = false;  ///< asks with its units, since a mutex's short request does not do
    std::optional<boot_clock::time_point> arrived;  ///< polling: when it first asked with units
    PollMark mark;
    /// Where the server of its slot sends the next request, in a cluster (ASK).
    std::optional<spi::Endpoint> ask_at;
    boot_clock::time_point closed_until;  ///< min_hold of the grant

    struct Handed {
        std::uint64_t number = 0;  ///< of the grant: higher than that of every earlier one
        std::uint64_t token = 0;
        PreviousHolder previous = PreviousHolder::unknown;
    };
    std::optional<Handed> handed;  ///< from a message
    bool unclaimed = false;        ///< granted by the message alone: the first renewal says so
};

/// The OwnerState behind an Attempt or a Held, made if need be.
inline OwnerState& state_of(std::shared_ptr<void>& p) {
    if (!p) p = std::make_shared<OwnerState>();
    return *static_cast<OwnerState*>(p.get());
}
inline OwnerState* find_state(const std::shared_ptr<void>& p) noexcept {
    return static_cast<OwnerState*>(p.get());
}

/// An Attempt or a Held that a mutex's short requests cannot describe.
template <class Item>
bool needs_units(const Item& of) noexcept {
    const OwnerState* const p = find_state(of.place);
    return !of.units.exclusive() || of.lock_delay > milliseconds::zero() ||
           of.min_hold > milliseconds::zero() || (p != nullptr && p->units);
}

/// How long a hand-over holds before its waiter has spoken.
inline milliseconds window_of(milliseconds ttl) noexcept {
    return std::min(ttl, milliseconds(3000));
}
PreviousHolder previous_from(char letter) noexcept;

/// What a hand-over message says, kept for take_handed(): the number of the grant, and what the
/// holder is told of the one before, with the token behind it where that is another number.
///
/// A client that may PUBLISH to this one's channel can write one. So it is believed for the
/// shortest time that a real one would be, the window, counted from our own last request; and its
/// token must be one that the server can have given by now, or soon after the last one that it has
/// told us of, or a store that compares tokens would refuse real ones for as long as the false one
/// is ahead.
void hear(OwnerState&, std::uint64_t number, std::string_view told, const Shared&,
          boot_clock::time_point now);
/// Until when the name stays closed at least, once it is granted.
void begin_hold(spi::Attempt&, boot_clock::time_point now);
/// A grant that came by message, if it still holds for long enough. Sends nothing.
bool take_handed(spi::Attempt&, const Shared&, boot_clock::time_point now);

}  // namespace holdfast::redis
