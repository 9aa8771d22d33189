#include "expected.hpp"

#include <algorithm>
#include <utility>

namespace oracle {

Expected::Expected(const suite::Facts& facts, const hf::Capabilities& can) : facts_(facts) {
    name_.place_after = can.has(hf::Capability::fifo) ? 0 : 1'000'000;
}

// --- attempt

Expected::Attempted Expected::attempt(const NameState::Request& r, bool by_message) {
    const std::string owner(r.owner);
    if (const auto handed = handed_.find(owner); handed != handed_.end()) {
        auto* own = find(owner);
        if (by_message) {
            if (own != nullptr) own->since = name_.now;
            return {handed->second};
        }
        if (own != nullptr ? own->revoked : name_.was_broken(owner)) return {{}, true};
    }
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
        prolonged(owner);
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
        handed_[owner] = attempt_at_once({.owner = owner,
                                          .units = w.units,
                                          .ttl = facts_.handed_for(w.ttl),
                                          .lock_delay = w.lock_delay,
                                          .min_hold = w.min_hold});
        prolonged(owner);
    }
}

void Expected::prolonged(std::string_view owner) {
    if (auto* own = find(owner); facts_.delay_in_lease && own != nullptr) own->valid = own->expires;
}

// --- the other verbs

void Expected::withdraw(std::string_view owner) {
    if (const auto* own = find(owner); own != nullptr && own->revoked && keeps_broken()) return;
    (void)name_.withdraw(owner);
    hand_over();
}

NameState::Renewed Expected::renew(const NameState::Request& r) {
    const auto made = name_.renew(r);
    if (!made.why) handed_.erase(std::string(r.owner));
    prolonged(r.owner);
    if (made.freed) hand_over();
    return made;
}

NameState::Released Expected::release(const NameState::Request& r) {
    auto* own = find(r.owner);
    if (own != nullptr && own->revoked && keeps_broken())
        return {hf::ReleaseResult::owned_by_other};
    const bool holds = own != nullptr && own->token == r.token;
    const bool broken = name_.was_broken(r.owner);
    if (holds && facts_.delay_in_lease && !facts_.released_in_delay)
        own->valid = own->expires - spi::to_us(r.lock_delay);
    auto made = name_.release(r);
    if (!holds && !facts_.release_remembered) {
        made.result = broken ? facts_.after_break.release : hf::ReleaseResult::already_expired;
        if (!name_.holders.empty()) made.result = hf::ReleaseResult::owned_by_other;
    }
    hand_over();
    return made;
}

spi::Survey Expected::tell(const hf::HolderFilter& which, spi::Tell what) {
    std::string detail;
    auto found = name_.tell(which, what, detail);
    if (keeps_broken() && what != spi::Tell::asked)
        for (const auto& m : found.holders) {
            std::erase_if(name_.broken, [&](const auto& b) { return b.owner == m.holder.owner; });
            name_.broken.push_back({m.holder.owner, name_.now + spi::to_us(facts_.broken_for)});
        }
    if (what == spi::Tell::gone && !found.holders.empty()) hand_over();
    return found;
}

}  // namespace oracle
