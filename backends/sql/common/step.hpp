// One item of a verb on its way to the table, and the row that it finds there: what both backends
// share, and the rules that follow from the two. No statements, no connection.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/spi/name_state.hpp"

namespace holdfast::sql {

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

    /// It takes the fast path: it needs only the columns of a mutex.
    bool fast() const noexcept {
        return units.exclusive() && lock_delay <= milliseconds::zero() &&
               min_hold <= milliseconds::zero();
    }

    void granted(std::int64_t with_token, PreviousHolder previous) {
        done = true;
        outcome =
            spi::Attempt::Granted{{static_cast<std::uint64_t>(with_token)}, previous, ttl, {}};
    }
    /// What the rules of a name make of it, and of the name.
    void run(spi::NameState&);
    /// The row is from another program or a newer version.
    void foreign(error_code why) {
        done = true;
        outcome = spi::Attempt::Failed{why};
        renewal = spi::Held::Renewal::lost;
        if (kind == Kind::renew) error = make_error_code(errc::lost);
        released = ReleaseResult::already_expired;
    }
    /// An error of the whole statement, or on the way to it.
    void refused(const spi::Failure& failed, const decltype(spi::Attempt::outcome)& attempted) {
        error = failed.why;
        detail = failed.detail;
        outcome = attempted;
        renewal = spi::Held::Renewal::unknown;
        released = ReleaseResult::unreachable;
        done = true;
    }
    /// It has surely done nothing, and is tried once more.
    void open_again() {
        done = false;
        error = {};
        detail.clear();
    }
    /// It may have been executed: the engine finds out.
    void unknown(const spi::Failure& failed) {
        refused(failed, spi::Attempt::NoAnswer{failed.why});
        freed = false;
    }

    /// Writes the outcome of an attempt.
    void tell(spi::Attempt& a) {
        a.outcome = outcome;
        a.detail = std::move(detail);
    }
    /// The same of a renewal or a release.
    void tell(spi::Held& h) {
        h.detail = std::move(detail);
        if (kind == Kind::renew) {
            h.renewal = renewal;
            h.renewal_error = error;
            h.asked = wanted;
        } else {
            h.released = released;
            h.release_error = error;
        }
    }
};

/// In the middle of steps. The text is short enough to need none.
inline spi::Failure no_memory() noexcept {
    return {errc::unavailable, "out of memory"};
}

inline void Step::run(spi::NameState& name) {
    const spi::NameState::Request request{owner, units,  ttl,   lock_delay, min_hold,
                                          queue, ticket, token, how};
    done = true;
    if (kind == Kind::attempt) {
        const auto made = name.attempt(request);
        using Made = spi::NameState::Attempted::Kind;
        switch (made.kind) {
            case Made::granted:
                return granted(made.token, made.previous);
            case Made::of_another_kind:
                detail = spi::NameState::other_kind;
                outcome = spi::Attempt::Failed{make_error_code(errc::kind_mismatch)};
                return;
            case Made::busy:
                marked = made.placed;
                left_us = name.next_end();
                outcome = spi::Attempt::Busy{spi::NameState::poll_within(left_us), false};
                return;
        }
    } else if (kind == Kind::withdraw) {
        freed = name.withdraw(owner);
    } else if (kind == Kind::renew) {
        const auto made = name.renew(request);
        renewal = made.why ? spi::Held::Renewal::lost : spi::Held::Renewal::renewed;
        error = made.why;
        wanted = made.asked;
        freed = made.freed;
    } else {
        const auto made = name.release(request);
        released = made.result;
        freed = made.freed;
    }
}

}  // namespace holdfast::sql
