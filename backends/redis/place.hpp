// What the backend remembers of one acquisition, from its first look to the end of its grant.
#pragma once
#include <optional>
#include <string>

#include "holdfast/spi/backend.hpp"

namespace holdfast::redis {

/// Written on the engine thread; by a lane only before the engine has seen it.
struct Place {
    std::int64_t ghost = 0;       ///< until when an unanswered request may still arrive, server ms
    std::string ticket;           ///< the place in line
    bool queued = false;          ///< a look was answered "queued": the next three belong to it
    std::uint64_t seen = 0;       ///< the lock's last token at that look
    boot_clock::time_point base;  ///< when that look was sent
    milliseconds window{};        ///< for how long a hand-over holds

    struct Handed {
        std::uint64_t token = 0;
        PreviousHolder previous = PreviousHolder::unknown;
    };
    std::optional<Handed> handed;  ///< told by a message
    bool unclaimed = false;        ///< granted by the message alone: the first renewal says so
};

/// The Place behind an Attempt or a Held, made if need be.
inline Place& place_of(std::shared_ptr<void>& p) {
    if (!p) p = std::make_shared<Place>();
    return *static_cast<Place*>(p.get());
}
inline Place* find_place(const std::shared_ptr<void>& p) noexcept {
    return static_cast<Place*>(p.get());
}

}  // namespace holdfast::redis
