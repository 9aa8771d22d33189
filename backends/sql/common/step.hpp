// One item of a verb on its way to the table, and the row that it finds there: what both backends
// have alike of them, and the rules that follow from the two. No statement, no connection.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/owner.hpp"

namespace holdfast::sql {

/// The column `mark`: the next holder's previous_holder; 0: there was none.
inline constexpr int mark_released = 1, mark_abandoned = 2, mark_crashed = 3;

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

/// One attempt, withdrawal, renewal or release. Owns its texts, since the caller may give up at its
/// deadline while the server or the disk hangs.
struct Step {
    enum class Kind : std::uint8_t { attempt, withdraw, renew, release };

    Step() = default;
    Step(Kind k, const std::string& prefix, const spi::Attempt& a)
        : kind(k), key(prefix), owner(a.owner), deadline(a.deadline), ttl(a.ttl), queue(a.queue) {
        key += a.name;
    }
    Step(Kind k, const std::string& prefix, const spi::Held& h)
        : kind(k),
          key(prefix),
          owner(h.owner),
          deadline(h.deadline),
          ttl(h.ttl),
          token(static_cast<std::int64_t>(h.token.value)),
          how(h.outcome) {
        key += h.name;
    }

    Kind kind{};
    std::string key;  ///< namespace and name
    std::string owner;
    boot_clock::time_point deadline;
    milliseconds ttl{};
    bool queue = false;  ///< the caller waits
    std::int64_t token = 0;
    Outcome how = Outcome::done;

    // --- what became of it
    decltype(spi::Attempt::outcome) outcome;
    spi::Held::Renewal renewal = spi::Held::Renewal::unknown;
    ReleaseResult released = ReleaseResult::unreachable;
    error_code error;
    std::string detail;
    bool freed = false;  ///< somebody else can have it now
    bool done = false;   ///< answered; later stages leave it alone

    /// What a release leaves behind.
    int mark() const noexcept { return how == Outcome::done ? mark_released : mark_abandoned; }
    void granted(std::int64_t with_token, std::int64_t previous) {
        done = true;
        outcome = spi::Attempt::Granted{
            {static_cast<std::uint64_t>(with_token)}, previous_of(previous), ttl, {}};
    }
    /// An error of the whole statement, or of the way to it.
    void refused(error_code why, const std::string& words,
                 const decltype(spi::Attempt::outcome)& attempted) {
        error = why;
        detail = words;
        outcome = attempted;
        renewal = spi::Held::Renewal::unknown;
        released = ReleaseResult::unreachable;
        done = true;
    }
    /// Whether anything was done is not known: the engine finds out.
    void unknown(error_code why) {
        refused(why, {}, spi::Attempt::NoAnswer{why});
        freed = false;
    }
};

/// The row of one name as it was read.
struct Row {
    enum class State : std::uint8_t { absent, free, expired, held };
    State state = State::absent;
    bool plain = true;  ///< false: another kind of lock keeps this row
    bool revoked = false;
    std::string owner;
    std::int64_t token = 0, left_us = 0, held_us = -1;
    int mark = 0;

    bool held() const noexcept { return state == State::held; }
    bool granted_to(const Step& s) const noexcept { return plain && token == s.token; }
};

/// Why there is nothing to renew; no error: it is held as it was granted.
inline error_code why_lost(const Row& row, const Step& s) noexcept {
    if (row.granted_to(s) && row.revoked) return make_error_code(errc::revoked);
    if (row.granted_to(s) && row.held() && row.owner == s.owner) return {};
    return make_error_code(errc::lost);
}

/// The result of a release that found nothing to free.
inline ReleaseResult nothing_to_free(const Row& row, const Step& s) noexcept {
    if (row.granted_to(s))
        // Free with our token: an earlier release of ours got through, unless it was broken.
        return row.state == Row::State::free && !row.revoked ? ReleaseResult::released
                                                             : ReleaseResult::already_expired;
    return row.held() ? ReleaseResult::owned_by_other : ReleaseResult::already_expired;
}

inline Holder holder_of(const Row& row) {
    const spi::Owner o = spi::parse_owner(row.owner);
    Holder h;
    h.owner = row.owner;
    h.host = o.host;
    h.pid = o.pid;
    h.note = o.note;
    h.foreign = !o.ours;
    h.token = {static_cast<std::uint64_t>(row.token)};
    h.ttl_left = milliseconds(row.left_us / 1000);
    if (row.held_us >= 0) h.held_for = milliseconds(row.held_us / 1000);
    h.revoked = row.revoked;
    return h;
}

inline Inspection inspection_of(const std::string& name, const Row& row) {
    Inspection found;
    found.name = name;
    found.last_token = {static_cast<std::uint64_t>(row.token)};
    if (row.held()) found.holders.push_back(holder_of(row));
    return found;
}

/// Why there is nothing to break; `detail` receives the words.
inline error_code why_not_broken(const Row& row, const BreakOptions& options, std::string& detail) {
    const FencingToken token{static_cast<std::uint64_t>(row.token)};
    if (!row.held())
        detail = "nobody holds it";
    else if (options.if_token && *options.if_token != token)
        detail = "the holder has another token: " + std::to_string(token.value);
    else
        return {};
    return make_error_code(errc::not_held);
}

/// For the operator that broke it: `row` as it was before.
inline std::vector<Broken> broken_of(const Row& row, const BreakOptions& options) {
    Broken broken;
    broken.holder = holder_of(row);
    broken.holder.revoked = true;
    broken.free_in = options.now ? milliseconds(0) : milliseconds(row.left_us / 1000 + 1);
    return std::vector<Broken>(1, broken);
}

}  // namespace holdfast::sql
