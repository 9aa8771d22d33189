// One item of a verb on its way to the table, and the row that it finds there: what both backends
// share, and the rules that follow from the two. No statements, no connection.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/spi/backend.hpp"

namespace holdfast::sql {

/// The column `mark`: the next holder's previous_holder; 0: there was none.
inline constexpr int mark_released = 1, mark_abandoned = 2, mark_crashed = 3;
/// The value for permits, which have no previous holder.
inline constexpr int mark_unknown = -1;

inline PreviousHolder previous_of(std::int64_t mark) noexcept {
    switch (mark) {
        case 0:
            return PreviousHolder::none;
        case mark_released:
            return PreviousHolder::released;
        case mark_abandoned:
            return PreviousHolder::abandoned;
        case mark_crashed:
            return PreviousHolder::crashed;
        default:
            return PreviousHolder::unknown;
    }
}

inline std::int64_t us(milliseconds ms) noexcept {
    return std::int64_t{ms.count()} * 1000;
}

/// How long a waiter sleeps without being notified: until something ends, at most a second.
inline milliseconds look_within(std::int64_t left_us) noexcept {
    return milliseconds(std::clamp<std::int64_t>(left_us / 1000 + 1, 1, 1000));
}

/// One attempt, withdrawal, renewal or release. Owns its texts, since the caller may give up at its
/// deadline while the server or the disk hangs.
struct Step {
    enum class Kind : std::uint8_t { attempt, withdraw, renew, release };

    Step() = default;
    Step(Kind k, const std::string& prefix, const spi::Attempt& a)
        : kind(k),
          key(prefix),
          owner(a.owner),
          units(a.units),
          deadline(a.deadline),
          ttl(a.ttl),
          lock_delay(a.lock_delay),
          min_hold(a.min_hold),
          queue(a.queue) {
        key += a.name;
    }
    Step(Kind k, const std::string& prefix, const spi::Held& h)
        : kind(k),
          key(prefix),
          owner(h.owner),
          units(h.units),
          deadline(h.deadline),
          ttl(h.ttl),
          lock_delay(h.lock_delay),
          min_hold(h.min_hold),
          token(static_cast<std::int64_t>(h.token.value)),
          how(h.outcome) {
        key += h.name;
    }

    Kind kind{};
    std::string key;  ///< namespace and name
    std::string owner;
    spi::Units units;
    boot_clock::time_point deadline;
    milliseconds ttl{}, lock_delay{}, min_hold{};
    bool queue = false;       ///< the caller waits
    std::int64_t ticket = 0;  ///< since when, on the table's clock; 0: it does not wait
    std::int64_t token = 0;
    Outcome how = Outcome::done;

    // --- the outcome
    decltype(spi::Attempt::outcome) outcome;
    spi::Held::Renewal renewal = spi::Held::Renewal::unknown;
    ReleaseResult released = ReleaseResult::unreachable;
    error_code error;
    std::string detail;
    bool freed = false;        ///< another owner can acquire it now
    bool done = false;         ///< answered; later stages leave it alone
    bool marked = false;       ///< it has left a mark, since it has waited for long
    bool wanted = false;       ///< renewed, and its release was requested
    std::int64_t left_us = 0;  ///< busy: for so long, unless a holder releases

    /// It needs only the columns of a mutex.
    bool plain() const noexcept {
        return units.exclusive() && lock_delay <= milliseconds::zero() &&
               min_hold <= milliseconds::zero();
    }

    /// The mark that a release leaves.
    int mark() const noexcept { return how == Outcome::done ? mark_released : mark_abandoned; }
    void granted(std::int64_t with_token, std::int64_t previous) {
        done = true;
        outcome = spi::Attempt::Granted{
            {static_cast<std::uint64_t>(with_token)}, previous_of(previous), ttl, {}};
    }
    /// The row is from another program or a newer version.
    void foreign(error_code why) {
        done = true;
        outcome = spi::Attempt::Failed{why};
        renewal = spi::Held::Renewal::lost;
        if (kind == Kind::renew) error = make_error_code(errc::lost);
        released = ReleaseResult::already_expired;
    }
    /// An error of the whole statement, or on the way to it.
    void refused(error_code why, const std::string& words,
                 const decltype(spi::Attempt::outcome)& attempted) {
        error = why;
        detail = words;
        outcome = attempted;
        renewal = spi::Held::Renewal::unknown;
        released = ReleaseResult::unreachable;
        done = true;
    }
    /// It may have been executed: the engine finds out.
    void unknown(error_code why) {
        refused(why, {}, spi::Attempt::NoAnswer{why});
        freed = false;
    }
};

}  // namespace holdfast::sql
