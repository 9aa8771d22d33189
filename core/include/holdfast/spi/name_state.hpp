// The rules of one lock name: who holds it, who waits, and what each verb and each operator's call
// makes of that. This is the specification of every backend, as code: memory, SQLite and PostgreSQL
// run it, and the others are held against it. No input or output, no clock.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/export.hpp"
#include "holdfast/spi/backend.hpp"

namespace holdfast::spi {

/// The state of one name at `now`. Times are microseconds of the clock that the state is kept with.
/// After a state was read or its clock moved, call expire() before anything else. Not thread-safe.
class HOLDFAST_EXPORT NameState {
public:
    using Time = std::int64_t;

    /// One grant, and the time for which it closes the name.
    struct Holding {
        std::string owner;  ///< empty: no holder any more, closed until `expires` by min_hold
        Units units;
        std::int64_t token = 0;  ///< 0: permits
        Time since = 0;
        Time valid = 0;    ///< the lease ends
        Time expires = 0;  ///< the grant ends: later than `valid` with lock_delay and min_hold
        PreviousHolder previous = PreviousHolder::none;  ///< reported with the grant
        bool revoked = false;                            ///< broken: it is not renewed
        bool asked = false;                              ///< its release was requested

        bool exclusive() const noexcept { return !owner.empty() && units.exclusive(); }
        friend bool operator==(const Holding&, const Holding&) = default;
    };
    /// A place in the queue. A later acquisition passes it only if it fits beside it.
    struct Waiter {
        std::string owner;
        Units units;
        Time ticket = 0;  ///< since when it waits
        Time until = 0;   ///< the place ends unless the waiter asks again
        friend bool operator==(const Waiter&, const Waiter&) = default;
    };
    /// A holder that was broken with BreakOptions::now. Until its lease would have ended, it hears
    /// why it is lost.
    struct BrokenHolder {
        std::string owner;
        Time until = 0;
        friend bool operator==(const BrokenHolder&, const BrokenHolder&) = default;
    };

    /// How long places last. A waiter that asks at least once a second keeps its place.
    static constexpr Time place_lasts = 3'000'000;

    // --- the state
    Time now = 0;
    std::int64_t token = 0;                          ///< the highest granted
    PreviousHolder previous = PreviousHolder::none;  ///< how the last exclusive holder ended
    std::optional<Holding> ended;  ///< an exclusive holder that has expired without a release
    std::vector<Holding> holders;  ///< in the order of their grants
    std::vector<Waiter> waiters;   ///< in the order of their tickets
    std::vector<BrokenHolder> broken;

    // --- how it is kept
    std::int64_t least_token = 0;  ///< a new token is not lower
    /// A waiter gets a place when it has waited for so long, and exclusive ones among themselves
    /// get none, where each place costs a write. 0: every waiter, at its first attempt.
    Time place_after = 1'000'000;
    bool changed = false;  ///< there is something to write

    // --- verbs

    /// What an owner asks. The other members of a verb are not read.
    struct Request {
        /// Without a ticket.
        static Request of(const Attempt&) noexcept;
        static Request of(const Held&) noexcept;

        std::string_view owner;
        Units units;
        milliseconds ttl{}, lock_delay{}, min_hold{};
        bool queue = false;               ///< attempt: it waits if it is busy
        Time ticket = 0;                  ///< attempt: since when; 0: since now
        std::int64_t token = 0;           ///< renew, release: of its grant
        Outcome outcome = Outcome::done;  ///< release
    };
    struct Attempted {
        enum class Kind : std::uint8_t { granted, busy, of_another_kind };
        Kind kind = Kind::busy;
        std::int64_t token = 0;                             ///< granted
        PreviousHolder previous = PreviousHolder::unknown;  ///< granted
        bool placed = false;                                ///< busy: it has a place in the queue
    };
    struct Renewed {
        error_code why;      ///< lost: errc::lost or errc::revoked; no error: renewed
        bool asked = false;  ///< renewed, and its release was requested
        bool freed = false;  ///< a downgrade: others may fit now
    };
    struct Released {
        ReleaseResult result = ReleaseResult::already_expired;
        bool freed = false;  ///< others may fit now
    };

    static constexpr std::string_view other_kind =
        "it is held or waited for as another kind of lock, or with another limit";

    /// Grants, if the units of all holders, of the waiters that came before and its own are at most
    /// the limit. For an owner that holds, it repeats the grant: an answer was lost.
    Attempted attempt(const Request&);
    /// Leaves the queue, and takes back a grant of which its owner never heard. True when others
    /// may fit now.
    bool withdraw(std::string_view owner);
    /// Prolongs a grant, and takes over its units: shared ones in place of exclusive ones are a
    /// downgrade.
    Renewed renew(const Request&);
    Released release(const Request&);

    // --- operators' calls

    Survey survey() const;
    /// Tells holders, and returns these alone. Errors: not_held (there is no such holder).
    Answer<Survey> tell(const HolderFilter&, Tell);

    // --- questions

    /// Moves `now`, and drops what has ended by then.
    void expire(Time at);
    /// Puts it where its ticket belongs.
    void add(Waiter);
    /// How long until something of it ends.
    Time next_end() const noexcept;
    /// How long a waiter sleeps without being notified: until something ends, at most a second.
    static milliseconds poll_within(Time left) noexcept {
        return milliseconds(std::clamp<Time>(left / 1000 + 1, 1, 1000));
    }
    /// The waiters that would be granted now, in the order of their tickets.
    std::vector<std::string_view> admissible() const;
    Holding* find(std::string_view owner) noexcept;
    bool was_broken(std::string_view owner) const noexcept;

private:
    Waiter* waiter(std::string_view owner) noexcept;
    void leave_queue(std::string_view owner);
    bool of_another_kind(const Units&) const noexcept;
    bool fits(const Request&) noexcept;
    Attempted grant(const Request&);
    bool take_place(const Request&);
    void prolong(Holding&, const Request&) noexcept;
    void erase(const Holding&);
};

constexpr NameState::Time to_us(milliseconds length) noexcept {
    return NameState::Time{length.count()} * 1000;
}

}  // namespace holdfast::spi
