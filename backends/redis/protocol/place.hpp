// The backend's data about one acquisition, from its first attempt to the end of its grant.
#pragma once
#include <algorithm>
#include <optional>
#include <string>

#include "../wire/shared.hpp"
#include "holdfast/spi/backend.hpp"

namespace holdfast::redis {

/// Written by the engine thread; by a lane only before the engine has seen it.
struct Place {
    std::int64_t ghost = 0;       ///< until when an unanswered request may still arrive, server ms
    bool unanswered = false;      ///< a request may have acquired the lock without our knowledge
    std::string ticket;           ///< the place in the queue
    bool queued = false;          ///< an attempt was answered "queued"; the next three belong to it
    std::uint64_t seen = 0;       ///< the number of the last grant at that attempt
    boot_clock::time_point base;  ///< when that attempt was sent
    milliseconds window{};        ///< how long a hand-off lasts without a renewal

    bool units = false;        ///< asks with units: the short request of a mutex does not suffice
    std::int64_t arrived = 0;  ///< when the first request with units was sent, server us; 0: none
    std::int64_t closed_until = 0;  ///< min_hold of the grant, server ms; 0: none

    struct Handed {
        std::uint64_t number = 0;  ///< of the grant: higher than all earlier ones
        std::uint64_t token = 0;
        PreviousHolder previous = PreviousHolder::unknown;
    };
    std::optional<Handed> handed;  ///< from a message
    bool unclaimed = false;  ///< granted by the message alone, which the first renewal reports
};

/// The Place of an Attempt or a Held, made on demand.
inline Place& place_of(std::shared_ptr<void>& p) {
    if (!p) p = std::make_shared<Place>();
    return *static_cast<Place*>(p.get());
}
inline Place* find_place(const std::shared_ptr<void>& p) noexcept {
    return static_cast<Place*>(p.get());
}

/// True if a mutex's short requests cannot describe it.
template <class Item>
bool needs_units(const Item& of) noexcept {
    const Place* const p = find_place(of.place);
    return !of.units.exclusive() || of.lock_delay > milliseconds::zero() ||
           of.min_hold > milliseconds::zero() || (p != nullptr && p->units);
}

/// How long a hand-off lasts before its waiter has sent anything.
inline milliseconds window_of(milliseconds ttl) noexcept {
    return std::min(ttl, milliseconds(3000));
}
PreviousHolder previous_from(char letter) noexcept;

/// How long a polling waiter stays ahead of later ones without a further attempt.
inline constexpr milliseconds mark_window{300};
/// How long it polls before that.
inline constexpr milliseconds mark_after{1000};

/// Keeps the content of a hand-off message for take_handed(): the number of the grant, how the
/// previous holder ended, and behind it the token if that is another number.
///
/// Any client that may PUBLISH to this channel can forge a message. So it is believed only for the
/// shortest time that a real one would be (the window, counted from our own last request). Its
/// token must be one that the server can have granted by now: a store that compares tokens would
/// otherwise refuse real ones until they catch up.
void hear(Place&, std::uint64_t number, std::string_view told, const Shared&,
          boot_clock::time_point now);
/// Records until when the name stays closed at least, once it is granted.
void begin_hold(spi::Attempt&, const Shared&, boot_clock::time_point now);
/// Takes a grant that came by message, if it still lasts long enough. Sends nothing.
bool take_handed(spi::Attempt&, const Shared&, boot_clock::time_point now);

}  // namespace holdfast::redis
