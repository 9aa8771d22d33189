// The holders of one name, the waiters that have waited long for it, and whether one may come in:
// the rules of all kinds of locks, applied to a name's row as read and written back whole. No
// statements, no connection.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/spi/holder.hpp"
#include "step.hpp"

namespace holdfast::sql {

/// Times are in us of the clock that the rows are written with. A state that is read does not
/// contain what has expired.
class NameState {
public:
    struct Part {
        std::string owner;  ///< empty: no holder, closed
        spi::Units units;
        std::int64_t token = 0, since = 0;
        std::int64_t valid = 0, expires = 0;  ///< expires: with lock_delay and min_hold
        int told = 0;                         ///< how the previous holder ended, as a `mark`
        bool revoked = false, asked = false;

        bool exclusive() const noexcept { return !owner.empty() && units.exclusive(); }
    };
    /// A waiter that has waited for `aged`. A later one passes it only if it fits beside it.
    struct Mark {
        std::string owner;
        spi::Units units;
        std::int64_t ticket = 0, until = 0;
    };
    /// A holder that was broken with `now`: it hears why it is lost until its lease would have
    /// ended.
    struct Gone {
        std::string owner;
        std::int64_t until = 0;
    };
    static constexpr std::int64_t aged = 1'000'000, mark_lasts = 3'000'000;

    std::int64_t now = 0;
    std::int64_t token = 0;     ///< the highest granted
    std::int64_t least = 0;     ///< lower bound of a new token
    int mark = 0;               ///< how the last exclusive holder ended
    std::optional<Part> ended;  ///< the exclusive holder whose time has expired
    std::vector<Part> parts;    ///< in the order of their grants
    std::vector<Mark> marks;
    std::vector<Gone> gone;
    bool changed = false;  ///< must be written

    /// Runs a step: its outcome, and its effect on the name.
    void run(Step&);
    /// Breaks the holders that the options select; empty when there are none, and `detail` receives
    /// the reason.
    std::vector<Broken> break_up(const BreakOptions&, std::string& detail);
    std::vector<Holder> ask(const HolderFilter&, std::string& detail);
    Inspection inspect(const std::string& name) const;
    /// Time until something of it expires.
    std::int64_t next_us() const noexcept;
    Part* find(std::string_view owner) noexcept;
    bool was_broken(std::string_view owner) const noexcept;

private:
    void attempt(Step&);
    void grant(Step&);
    void wait(Step&);
    void withdraw(Step&);
    void renew(Step&);
    void release(Step&);
    void leave_line(std::string_view owner);
    bool of_another_kind(const spi::Units&) const noexcept;
    Mark* mark_of(std::string_view owner) noexcept;
    bool fits(const Step&) noexcept;
    void prolong(Part&, const Step&) noexcept;
    Holder holder(const Part&) const;
    bool is_meant(const Part&, const HolderFilter&) const;
    void say_why_not(const HolderFilter&, std::string& detail) const;
};

inline NameState::Part* NameState::find(std::string_view owner) noexcept {
    const auto at =
        std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.owner == owner; });
    return at == parts.end() || owner.empty() ? nullptr : &*at;
}

inline bool NameState::was_broken(std::string_view owner) const noexcept {
    return std::any_of(gone.begin(), gone.end(), [&](const Gone& g) { return g.owner == owner; });
}

inline NameState::Mark* NameState::mark_of(std::string_view owner) noexcept {
    const auto at =
        std::find_if(marks.begin(), marks.end(), [&](const Mark& m) { return m.owner == owner; });
    return at == marks.end() ? nullptr : &*at;
}

inline void NameState::leave_line(std::string_view owner) {
    if (std::erase_if(marks, [&](const Mark& m) { return m.owner == owner; }) > 0) changed = true;
}

/// Whether it has another limit than those that hold or wait. Those all have the same, since no
/// other was let in.
inline bool NameState::of_another_kind(const spi::Units& u) const noexcept {
    if (!parts.empty()) return parts.front().units.of != u.of;
    return !marks.empty() && marks.front().units.of != u.of;
}

/// Earlier waiters that fit as well do not stand in the way. A marked waiter came at the time in
/// its mark: a ticket that is read off the server's clock again may differ a little, and then two
/// waiters could each stand behind the other.
inline bool NameState::fits(const Step& s) noexcept {
    const Mark* own = mark_of(s.owner);
    const std::int64_t came = own != nullptr ? own->ticket : s.ticket != 0 ? s.ticket : now;
    std::uint64_t sum = s.units.take;
    for (const Part& p : parts)
        sum += p.units.take;
    for (const Mark& m : marks)
        if (m.owner != s.owner && (m.ticket < came || (m.ticket == came && m.owner < s.owner)))
            sum += m.units.take;
    return sum <= s.units.of;
}

inline void NameState::prolong(Part& p, const Step& s) noexcept {
    p.valid = now + us(s.ttl);
    p.expires = std::max(p.valid + us(s.lock_delay), p.since + us(s.min_hold));
    changed = true;
}

inline std::int64_t NameState::next_us() const noexcept {
    std::int64_t next = 1'000'000'000;
    for (const Part& p : parts)
        next = std::min(next, p.expires - now);
    for (const Mark& m : marks)
        next = std::min(next, m.until - now);
    return std::max<std::int64_t>(next, 1);
}

inline void NameState::run(Step& s) {
    s.done = true;
    switch (s.kind) {
        case Step::Kind::attempt:
            return attempt(s);
        case Step::Kind::withdraw:
            return withdraw(s);
        case Step::Kind::renew:
            return renew(s);
        case Step::Kind::release:
            return release(s);
    }
}

inline void NameState::attempt(Step& s) {
    Part* own = find(s.owner);
    if (own != nullptr && !own->revoked && own->valid > now) {
        // Asked again after a lost answer: the same grant, from now on.
        prolong(*own, s);
        return s.granted(own->token, own->told);
    }
    if (of_another_kind(s.units)) {
        leave_line(s.owner);
        s.detail = "it is held or waited for as another kind of lock, or with another limit";
        s.outcome = spi::Attempt::Failed{make_error_code(errc::kind_mismatch)};
    } else if (own == nullptr && fits(s)) {
        grant(s);
    } else {
        wait(s);
    }
}

inline void NameState::grant(Step& s) {
    leave_line(s.owner);
    if (ended) mark = ended->owner == s.owner ? ended->told : mark_crashed;
    ended.reset();
    Part p;
    p.owner = s.owner;
    p.units = s.units;
    p.since = now;
    p.told = mark;
    if (s.units.permits()) {
        p.told = mark_unknown;
    } else {
        token = std::max(token + 1, least);
        p.token = token;
    }
    prolong(p, s);
    s.granted(p.token, p.told);
    parts.push_back(std::move(p));
}

inline void NameState::wait(Step& s) {
    s.left_us = next_us();
    s.outcome = spi::Attempt::Busy{look_within(s.left_us), false};
    if (!s.queue || s.ticket == 0 || now - s.ticket < aged) return;
    // Exclusive ones one after another need no marks to take turns.
    const bool alike = marks.empty() && std::all_of(parts.begin(), parts.end(), [](const Part& p) {
                           return p.units.exclusive();
                       });
    if (s.units.exclusive() && alike) return;
    s.marked = true;
    Mark* own = mark_of(s.owner);
    if (own == nullptr)
        marks.push_back({s.owner, s.units, s.ticket, now + mark_lasts});
    else if (own->until - now < mark_lasts * 2 / 3)
        own->until = now + mark_lasts;
    else
        return;
    changed = true;
}

inline void NameState::withdraw(Step& s) {
    leave_line(s.owner);
    s.freed = changed;
    if (ended && ended->owner == s.owner) {
        mark = ended->told;
        ended.reset();
    } else if (const Part* own = find(s.owner); own != nullptr) {
        // It never worked under the lock: what it was told goes to the next.
        if (own->exclusive()) mark = own->told;
        parts.erase(parts.begin() + (own - parts.data()));
    } else {
        return;
    }
    s.freed = changed = true;
}

inline void NameState::renew(Step& s) {
    s.renewal = spi::Held::Renewal::lost;
    const bool over = ended && ended->token == s.token && ended->revoked;
    Part* own = find(s.owner);
    s.error = make_error_code(over || was_broken(s.owner) ? errc::revoked : errc::lost);
    if (own == nullptr || own->token != s.token) return;
    if (own->revoked) s.error = make_error_code(errc::revoked);
    if (own->revoked || own->valid <= now) return;
    s.renewal = spi::Held::Renewal::renewed;
    s.error = {};
    s.wanted = own->asked;
    prolong(*own, s);
    if (s.units == own->units) return;
    own->units = s.units;  // a downgrade
    mark = mark_released;
    s.freed = true;
}

inline void NameState::release(Step& s) {
    Part* own = find(s.owner);
    if (own == nullptr && was_broken(s.owner)) {
        s.released = ReleaseResult::owned_by_other;
        return;
    }
    if (own == nullptr || own->token != s.token) {
        const bool last = s.token != 0 && token == s.token;
        // Free with our token: an earlier release of ours got through.
        if (last && parts.empty() && !ended)
            s.released = ReleaseResult::released;
        else
            s.released = last || parts.empty() ? ReleaseResult::already_expired
                                               : ReleaseResult::owned_by_other;
        return;
    }
    const bool in_time = own->valid > now;
    s.released = in_time ? ReleaseResult::released : ReleaseResult::already_expired;
    if (own->exclusive()) mark = in_time ? s.mark() : mark_crashed;
    const std::int64_t closed_until = own->since + us(s.min_hold);
    if (now < closed_until) {
        own->owner.clear();
        own->expires = own->valid = closed_until;
    } else {
        parts.erase(parts.begin() + (own - parts.data()));
    }
    s.freed = changed = true;
}

// --- what operators ask

inline Holder NameState::holder(const Part& p) const {
    Holder h = spi::holder_of(p.owner);
    h.token = {static_cast<std::uint64_t>(p.token)};
    h.ttl_left = milliseconds(std::max<std::int64_t>(p.valid - now, 0) / 1000);
    if (p.since >= 0 && p.since <= now) h.held_for = milliseconds((now - p.since) / 1000);
    h.revoked = p.revoked;
    h.mode = p.units.mode;
    h.permits = p.units.permits() ? p.units.take : 1;
    h.asked = p.asked;
    return h;
}

inline bool NameState::is_meant(const Part& p, const HolderFilter& which) const {
    return !p.owner.empty() && spi::is_meant(which, p.owner, {static_cast<std::uint64_t>(p.token)});
}

inline void NameState::say_why_not(const HolderFilter& which, std::string& detail) const {
    const bool held =
        std::any_of(parts.begin(), parts.end(), [](const Part& p) { return !p.owner.empty(); });
    if (!held)
        detail = "it has no holder";
    else if (which.if_token && parts.size() == 1)
        detail = "the holder has another token: " + std::to_string(parts.front().token);
    else
        detail = "no holder has that owner and token";
}

inline std::vector<Broken> NameState::break_up(const BreakOptions& options, std::string& detail) {
    std::vector<Broken> out;
    for (Part& p : parts) {
        if (!is_meant(p, options.which())) continue;
        p.revoked = true;
        const auto left = options.now ? 0 : (p.expires - now) / 1000 + 1;
        out.push_back({holder(p), milliseconds(left)});
        if (!options.now) continue;
        gone.push_back({p.owner, p.valid});
        if (p.exclusive()) mark = mark_crashed;
    }
    if (options.now)
        std::erase_if(parts, [&](const Part& p) { return is_meant(p, options.which()); });
    if (out.empty()) say_why_not(options.which(), detail);
    changed = changed || !out.empty();
    return out;
}

inline std::vector<Holder> NameState::ask(const HolderFilter& which, std::string& detail) {
    std::vector<Holder> out;
    for (Part& p : parts) {
        if (!is_meant(p, which)) continue;
        changed = changed || !p.asked;
        p.asked = true;
        out.push_back(holder(p));
    }
    if (out.empty()) say_why_not(which, detail);
    return out;
}

inline Inspection NameState::inspect(const std::string& name) const {
    Inspection found;
    found.name = name;
    found.last_token = {static_cast<std::uint64_t>(token)};
    const auto kind = [&](const spi::Units& u) {
        if (u.permits()) found.kind = Kind::semaphore, found.limit = u.of;
        if (u.mode == Mode::shared) found.kind = Kind::shared_mutex;
    };
    for (const Part& p : parts) {
        kind(p.units);
        if (!p.owner.empty() && p.valid > now) {
            found.holders.push_back(holder(p));
            continue;
        }
        const milliseconds left((p.expires - now) / 1000 + 1);
        found.closed_for = std::max(found.closed_for.value_or(left), left);
    }
    for (const Mark& m : marks) {
        kind(m.units);
        Holder h = spi::holder_of(m.owner);
        h.mode = m.units.mode;
        h.permits = m.units.permits() ? m.units.take : 1;
        found.waiters.push_back(std::move(h));
    }
    return found;
}

}  // namespace holdfast::sql
