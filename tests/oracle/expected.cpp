#include "expected.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace oracle {
namespace {

constexpr NameState::Time second = 1'000'000;

constexpr NameState::Time whole_seconds(NameState::Time t) noexcept {
    return (t + second - 1) / second * second;
}

}  // namespace

Expected::Expected(const suite::Facts& facts, const hf::Capabilities& can) : facts_(facts) {
    name_.place_after = can.has(hf::Capability::fifo) ? 0 : 1'000'000;
}

// --- time

void Expected::expire(NameState::Time at) {
    for (const auto& h : name_.holders)
        if (h.revoked && h.expires <= at) knows_broken_.insert(h.owner);
    name_.expire(at);
    marks_.expire(at);
    if (facts_.told_within.count() > 0) hand_over();
}

bool Expected::close_to_an_edge(NameState::Time now, NameState::Time edge) const {
    const auto late = spi::to_us(facts_.ends_late);
    const auto close = [&](NameState::Time t) { return std::abs(t - now) < edge; };
    const auto ends = [&](NameState::Time t) { return t - edge < now && now < t + late + edge; };
    for (const auto& h : name_.holders)
        if (close(h.valid) || ends(h.expires)) return true;
    for (const auto& w : name_.waiters)
        if (close(w.until) || close(w.until - NameState::place_lasts * 2 / 3)) return true;
    for (const auto& b : name_.broken)
        if (close(b.until)) return true;
    for (const auto& [owner, until] : believed_)
        if (close(until)) return true;
    return ends(marks_.known_until());
}

// --- attempt

bool Expected::starts_over(std::string_view owner) const {
    return facts_.starts_over && handed_.contains(owner) && name_.was_broken(owner);
}

bool Expected::waits_with_other_limit(const NameState::Request& r) const {
    const auto& waiters = name_.waiters;
    return facts_.permits_in_turn && !waiters.empty() && waiters.front().units.of != r.units.of;
}

Expected::Attempted Expected::attempt(const NameState::Request& r, const Heard& heard) {
    const std::string owner(r.owner);
    if (first_.empty()) first_ = owner;
    if (starts_over(owner)) {
        // What was broken is no grant of the acquisition that begins here.
        handed_.erase(owner);
        std::erase_if(name_.broken, [&](const auto& b) { return b.owner == owner; });
    }
    if (const auto handed = handed_.find(owner); handed != handed_.end()) {
        auto* own = find(owner);
        if (heard.before && facts_.told_within.count() == 0) {
            if (own != nullptr) own->since = name_.now;
            return {handed->second};
        }
        if (own != nullptr ? own->revoked : name_.was_broken(owner)) return {{}, true};
    }
    if (waits_with_other_limit(r)) return {};
    // One of another kind is refused before the server looks at the line.
    if (NameState(name_).attempt(r).kind == NameState::Attempted::Kind::of_another_kind)
        return {name_.attempt(r)};
    const bool again = find(owner) != nullptr;
    if (!again) hand_over(r.ticket);
    auto made = attempt_at_once(r);
    if (made.kind == NameState::Attempted::Kind::granted) {
        handed_.erase(owner);
        if (again && facts_.delay_in_lease) {
            find(owner)->since = name_.now;
            made = name_.attempt(r);
        }
        prolonged(r, heard);
        if (facts_.marks_of_holders && !r.units.permits()) {
            made.previous = marks_.before(owner);
            if (r.units.exclusive()) marks_.leave(owner);
            const bool none = made.previous == hf::PreviousHolder::none;
            if (none && first_ != owner && facts_.released_for_good)
                made.previous = hf::PreviousHolder::released;
        }
    } else if (r.queue && made.kind == NameState::Attempted::Kind::busy) {
        waiting_.insert_or_assign(owner, Waiting{r.units, r.ttl, r.lock_delay, r.min_hold});
        keep_place(r);
    }
    if (!again) hand_over();
    return {made};
}

void Expected::keep_place(const NameState::Request& r) {
    if (facts_.place_lasts == nullptr) return;
    const auto own = std::find_if(name_.waiters.begin(), name_.waiters.end(),
                                  [&](const auto& w) { return w.owner == r.owner; });
    const auto until = name_.now + spi::to_us(facts_.place_lasts(r.ttl));
    if (facts_.marks && !leaves_mark(r)) {
        if (own != name_.waiters.end()) name_.waiters.erase(own);
    } else if (own == name_.waiters.end()) {
        name_.add({std::string(r.owner), r.units, r.ticket, until});
    } else {
        own->until = until;
    }
}

/// A mutex meets those that ask with their units where readers hold, or where the name is free and
/// there are marks.
bool Expected::leaves_mark(const NameState::Request& r) {
    const bool free = name_.holders.empty();
    const bool marked = !name_.waiters.empty() || !name_.broken.empty();
    const bool readers = !free && !name_.holders.front().units.exclusive();
    if (!r.units.exclusive() || readers || (free && marked)) with_units_.emplace(r.owner);
    return with_units_.contains(r.owner) && name_.now - r.ticket >= name_.place_after;
}

NameState::Attempted Expected::attempt_at_once(const NameState::Request& r) {
    const auto ended = name_.ended;
    auto made = name_.attempt(r);
    // Whether that one worked under the lock nobody knows.
    if (ended && !name_.ended && ended->owner != r.owner && !ended->revoked &&
        handed_.contains(ended->owner) && ended->previous != hf::PreviousHolder::crashed) {
        name_.previous = hf::PreviousHolder::unknown;
        made.previous = find(r.owner)->previous = hf::PreviousHolder::unknown;
    }
    return made;
}

void Expected::hand_over(NameState::Time ahead_of) {
    if (facts_.handed_for == nullptr) return;
    for (;;) {
        const auto ready = name_.admissible();
        if (ready.empty()) return;
        const std::string owner(ready.front());
        const auto& first = name_.waiters.front();
        if (ahead_of != 0 && first.ticket >= ahead_of) return;
        const Waiting& w = waiting_.at(owner);
        const NameState::Request r{.owner = owner,
                                   .units = w.units,
                                   .ttl = facts_.handed_for(w.ttl),
                                   .lock_delay = w.lock_delay,
                                   .min_hold = w.min_hold};
        handed_[owner] = attempt_at_once(r);
        prolonged(r, {});
    }
}

void Expected::prolonged(const NameState::Request& r, const Heard& heard) {
    auto* own = find(r.owner);
    if (!facts_.delay_in_lease || own == nullptr) return;
    own->valid = own->expires;
    if (facts_.told_within.count() == 0) return;
    const auto base = heard.base != 0 ? heard.base : name_.now;
    own->valid = own->expires = base + spi::to_us(r.ttl + r.lock_delay);
    believed_.erase(own->owner);
    if (r.lock_delay.count() > 0) believed_[own->owner] = base + spi::to_us(r.ttl);
    if (!facts_.whole_seconds) return;
    own->expires = base + whole_seconds(spi::to_us(r.ttl + r.lock_delay));
    // It is shown as closed when the seconds left, and a part of one, are within the delay.
    own->valid = own->expires - spi::to_us(r.lock_delay) / second * second;
}

// --- the other verbs

void Expected::withdraw(std::string_view owner) {
    if (const auto* own = find(owner); own != nullptr && own->revoked && keeps_broken()) return;
    // Whose client has ended it before did that as for a holder that crashed.
    if (!facts_.client_remembers || find(owner) != nullptr) marks_.take_back(owner);
    (void)name_.withdraw(owner);
    hand_over();
}

NameState::Renewed Expected::renew(const NameState::Request& r, const Heard& heard) {
    auto* own = find(r.owner);
    const auto valid = own != nullptr ? own->valid : 0;
    if (own != nullptr && facts_.delay_in_lease) own->valid = own->expires;
    auto made = name_.renew(r);
    if (own != nullptr && made.why) own->valid = valid;
    if (own == nullptr && made.why == hf::errc::revoked) {
        const bool forgotten = keeps_broken() && !name_.was_broken(r.owner);
        made.why = make_error_code(forgotten ? hf::errc::lost : facts_.after_break.lost_reason);
    }
    if (facts_.client_remembers) {
        watches_.emplace(r.owner);
        if (own != nullptr && own->revoked) knows_broken_.emplace(r.owner);
        if (knows_broken_.contains(r.owner)) made.why = make_error_code(hf::errc::revoked);
    }
    if (!made.why) {
        handed_.erase(std::string(r.owner));
        prolonged(r, heard);
    }
    if (made.freed) {
        marks_.release(hf::Outcome::done, release_known_until(own->expires));
        hand_over();
    }
    return made;
}

NameState::Released Expected::release(const NameState::Request& r) {
    auto* own = find(r.owner);
    if (own != nullptr && own->revoked && keeps_broken())
        return {hf::ReleaseResult::owned_by_other};
    const bool holds = own != nullptr && own->token == r.token;
    const bool broken = name_.was_broken(r.owner);
    const bool refused = holds && own->revoked && !facts_.broken_may_release;
    const bool exclusive = holds && own->exclusive();
    if (holds && facts_.delay_in_lease && !facts_.released_in_delay) {
        const auto believed = believed_.find(r.owner);
        own->valid = believed != believed_.end() ? believed->second
                                                 : own->expires - spi::to_us(r.lock_delay);
    }
    const auto lease_ends = holds ? own->expires : 0;
    auto made = name_.release(r);
    if (exclusive && !refused && made.result == hf::ReleaseResult::released)
        marks_.release(r.outcome, release_known_until(lease_ends));
    if (refused) {
        made.result = hf::ReleaseResult::owned_by_other;
    } else if (!holds && !facts_.release_remembered) {
        made.result = broken ? facts_.after_break.release : hf::ReleaseResult::already_expired;
        if (!facts_.looks_at_own_only && !name_.holders.empty())
            made.result = hf::ReleaseResult::owned_by_other;
    }
    if (facts_.client_remembers) {
        if (!holds && knows_broken_.contains(r.owner))
            made.result = hf::ReleaseResult::owned_by_other;
        made.result = releases_.emplace(r.owner, made.result).first->second;
    }
    hand_over();
    return made;
}

spi::Survey Expected::tell(const hf::HolderFilter& which, spi::Tell what) {
    auto told = name_.tell(which, what);
    auto found = told ? std::move(*told) : spi::Survey();
    if (what == spi::Tell::revoked)
        for (const auto& m : found.holders)
            if (watches_.contains(m.holder.owner)) knows_broken_.insert(m.holder.owner);
    if (facts_.break_replaces_request)
        for (auto& h : name_.holders)
            h.asked = h.asked && !h.revoked;
    if (keeps_broken() && what != spi::Tell::asked)
        for (const auto& m : found.holders) {
            std::erase_if(name_.broken, [&](const auto& b) { return b.owner == m.holder.owner; });
            name_.broken.push_back({m.holder.owner, name_.now + spi::to_us(facts_.broken_for)});
        }
    if (what == spi::Tell::gone && !found.holders.empty()) hand_over();
    return found;
}

}  // namespace oracle
