#include "holdfast/spi/name_state.hpp"

#include <algorithm>
#include <tuple>

#include "holdfast/spi/holder.hpp"

namespace holdfast::spi {
namespace {

template <class Of>
auto find_owner(Of& all, std::string_view owner) noexcept {
    return std::find_if(all.begin(), all.end(),
                        [&](const auto& one) { return one.owner == owner; });
}

milliseconds left(NameState::Time until, NameState::Time now) noexcept {
    return milliseconds((until - now) / 1000 + 1);
}

bool is_meant(const NameState::Holding& h, const HolderFilter& which) {
    return !h.owner.empty() && spi::is_meant(which, h.owner, {static_cast<std::uint64_t>(h.token)});
}

Survey::Member described(const NameState::Holding& held, NameState::Time now) {
    Holder h = holder_of(held.owner);
    h.token = {static_cast<std::uint64_t>(held.token)};
    h.ttl_left = milliseconds(std::max<NameState::Time>(held.valid - now, 0) / 1000);
    if (held.since >= 0 && held.since <= now) h.held_for = milliseconds((now - held.since) / 1000);
    h.revoked = held.revoked;
    h.asked = held.asked;
    return {std::move(h), held.units, left(held.expires, now)};
}

/// What an Attempt and a Held both have.
template <class Item>
NameState::Request of_any(const Item& i) noexcept {
    return {.owner = i.owner,
            .units = i.units,
            .ttl = i.ttl,
            .lock_delay = i.lock_delay,
            .min_hold = i.min_hold};
}

std::string why_none(const std::vector<NameState::Holding>& holders, const HolderFilter& which) {
    const bool held =
        std::any_of(holders.begin(), holders.end(), [](const auto& h) { return !h.owner.empty(); });
    if (!held) return "it has no holder";
    if (which.if_token && holders.size() == 1)
        return "the holder has another token: " + std::to_string(holders.front().token);
    return "no holder has that owner and token";
}

}  // namespace

NameState::Request NameState::Request::of(const Attempt& a) noexcept {
    Request r = of_any(a);
    r.queue = a.queue;
    return r;
}

NameState::Request NameState::Request::of(const Held& h) noexcept {
    Request r = of_any(h);
    r.token = static_cast<std::int64_t>(h.token.value);
    r.outcome = h.outcome;
    return r;
}

// --- attempt

NameState::Attempted NameState::attempt(const Request& r) {
    Holding* own = find(r.owner);
    if (own != nullptr && !own->revoked && own->valid > now) {
        prolong(*own, r);
        return {Attempted::Kind::granted, own->token, own->previous};
    }
    if (of_another_kind(r.units)) {
        leave_queue(r.owner);
        return {Attempted::Kind::of_another_kind};
    }
    // What is left of a lease of its own closes the name to itself as well.
    if (own == nullptr && fits(r)) return grant(r);
    return {.kind = Attempted::Kind::busy, .placed = take_place(r)};
}

/// All that hold or wait have the same limit, since no other was let in.
bool NameState::of_another_kind(const Units& u) const noexcept {
    if (!holders.empty()) return holders.front().units.of != u.of;
    return !waiters.empty() && waiters.front().units.of != u.of;
}

/// Earlier waiters that fit as well do not stand in the way. A waiter with a place came at the time
/// of its ticket: if that is read off a server's clock again it may differ a little, and then two
/// waiters could each stand behind the other.
bool NameState::fits(const Request& r) noexcept {
    const Waiter* own = waiter(r.owner);
    const Time came = own != nullptr ? own->ticket : r.ticket != 0 ? r.ticket : now;
    std::uint64_t sum = r.units.take;
    for (const Holding& h : holders)
        sum += h.units.take;
    for (const Waiter& w : waiters)
        if (w.owner != r.owner && (w.ticket < came || (w.ticket == came && w.owner < r.owner)))
            sum += w.units.take;
    return sum <= r.units.of;
}

NameState::Attempted NameState::grant(const Request& r) {
    leave_queue(r.owner);
    if (ended) previous = ended->owner == r.owner ? ended->previous : PreviousHolder::crashed;
    ended.reset();
    Holding h;
    h.owner = r.owner;
    h.units = r.units;
    h.since = now;
    h.previous = previous;
    if (r.units.permits()) {
        h.previous = PreviousHolder::unknown;
    } else {
        token = std::max(token + 1, least_token);
        h.token = token;
    }
    prolong(h, r);
    holders.push_back(std::move(h));
    return {Attempted::Kind::granted, holders.back().token, holders.back().previous};
}

/// True when it has a place in the queue.
bool NameState::take_place(const Request& r) {
    if (!r.queue) return false;
    if (place_after > 0) {
        if (r.ticket == 0 || now - r.ticket < place_after) return false;
        // Exclusive ones one after another need no places to take turns.
        const bool alike =
            waiters.empty() && std::all_of(holders.begin(), holders.end(),
                                           [](const Holding& h) { return h.units.exclusive(); });
        if (r.units.exclusive() && alike) return false;
    }
    Waiter* own = waiter(r.owner);
    if (own == nullptr) {
        const Time came = r.ticket != 0 ? r.ticket : now;
        add({std::string(r.owner), r.units, came, now + place_lasts});
    } else if (own->until - now < place_lasts * 2 / 3) {
        own->until = now + place_lasts;
    } else {
        return true;
    }
    changed = true;
    return true;
}

void NameState::add(Waiter w) {
    const auto before = [](const Waiter& a, const Waiter& b) {
        return std::tie(a.ticket, a.owner) < std::tie(b.ticket, b.owner);
    };
    waiters.insert(std::upper_bound(waiters.begin(), waiters.end(), w, before), std::move(w));
}

/// min_hold counts from the grant, lock_delay from the end of the lease.
void NameState::prolong(Holding& h, const Request& r) noexcept {
    h.valid = now + to_us(r.ttl);
    h.expires = std::max(h.valid + to_us(r.lock_delay), h.since + to_us(r.min_hold));
    changed = true;
}

// --- withdraw

bool NameState::withdraw(std::string_view owner) {
    const auto before = waiters.size();
    leave_queue(owner);
    // It never worked under the lock: what it was told goes to the next one.
    if (ended && ended->owner == owner) {
        previous = ended->previous;
        ended.reset();
    } else if (const Holding* own = find(owner); own != nullptr) {
        if (own->exclusive()) previous = own->previous;
        erase(*own);
    } else {
        return waiters.size() != before;
    }
    changed = true;
    return true;
}

// --- renew

NameState::Renewed NameState::renew(const Request& r) {
    const bool over = ended && ended->token == r.token && ended->revoked;
    Holding* own = find(r.owner);
    if (own == nullptr || own->token != r.token)
        return {make_error_code(over || was_broken(r.owner) ? errc::revoked : errc::lost)};
    if (own->revoked) return {make_error_code(errc::revoked)};
    if (own->valid <= now) return {make_error_code(errc::lost)};
    prolong(*own, r);
    Renewed done{{}, own->asked, false};
    if (r.units != own->units) {
        own->units = r.units;
        previous = PreviousHolder::released;
        done.freed = true;
    }
    return done;
}

// --- release

NameState::Released NameState::release(const Request& r) {
    Holding* own = find(r.owner);
    if (own == nullptr && was_broken(r.owner)) return {ReleaseResult::owned_by_other};
    if (own == nullptr || own->token != r.token) {
        const bool last = r.token != 0 && token == r.token;
        // Free with its token: an earlier release of its own got through.
        if (last && holders.empty() && !ended) return {ReleaseResult::released};
        return {last || holders.empty() ? ReleaseResult::already_expired
                                        : ReleaseResult::owned_by_other};
    }
    const bool in_time = own->valid > now;
    if (own->exclusive())
        previous = !in_time                     ? PreviousHolder::crashed
                   : r.outcome == Outcome::done ? PreviousHolder::released
                                                : PreviousHolder::abandoned;
    const Time closed_until = own->since + to_us(r.min_hold);
    if (now < closed_until) {
        own->owner.clear();
        own->expires = own->valid = closed_until;
    } else {
        erase(*own);
    }
    changed = true;
    return {in_time ? ReleaseResult::released : ReleaseResult::already_expired, true};
}

// --- operators' calls

Survey NameState::survey() const {
    Survey found;
    found.last_token = {static_cast<std::uint64_t>(token)};
    for (const Holding& h : holders) {
        found.units = h.units;
        if (!h.owner.empty() && h.valid > now)
            found.holders.push_back(described(h, now));
        else
            found.closed_for =
                std::max(found.closed_for.value_or(milliseconds(0)), left(h.expires, now));
    }
    for (const Waiter& w : waiters)
        found.waiters.push_back({holder_of(w.owner), w.units});
    return found;
}

Answer<Survey> NameState::tell(const HolderFilter& which, Tell what) {
    Survey reached;
    for (Holding& h : holders) {
        if (!is_meant(h, which)) continue;
        reached.holders.push_back(described(h, now));
        changed = changed || what != Tell::asked || !h.asked;
        (what == Tell::asked ? h.asked : h.revoked) = true;
        if (what != Tell::gone) continue;
        broken.push_back({h.owner, h.valid});
        if (h.exclusive()) previous = PreviousHolder::crashed;
    }
    if (what == Tell::gone)
        std::erase_if(holders, [&](const Holding& h) { return is_meant(h, which); });
    if (reached.holders.empty()) return Failure(errc::not_held, why_none(holders, which));
    return reached;
}

// --- questions

void NameState::expire(Time at) {
    now = at;
    const auto over = [&](const Holding& h) { return h.expires <= now; };
    for (Holding& h : holders)
        if (over(h) && h.exclusive()) ended = std::move(h);
    std::erase_if(holders, over);
    std::erase_if(waiters, [&](const Waiter& w) { return w.until <= now; });
    std::erase_if(broken, [&](const BrokenHolder& b) { return b.until <= now; });
}

NameState::Time NameState::next_end() const noexcept {
    Time next = 1'000'000'000;
    for (const Holding& h : holders)
        next = std::min(next, h.expires - now);
    for (const Waiter& w : waiters)
        next = std::min(next, w.until - now);
    return std::max<Time>(next, 1);
}

std::vector<std::string_view> NameState::admissible() const {
    std::uint64_t sum = 0;
    for (const Holding& h : holders)
        sum += h.units.take;
    std::vector<std::string_view> out;
    for (const Waiter& w : waiters) {
        sum += w.units.take;
        if (sum > w.units.of) break;
        out.push_back(w.owner);
    }
    return out;
}

NameState::Holding* NameState::find(std::string_view owner) noexcept {
    const auto at = find_owner(holders, owner);
    return at == holders.end() || owner.empty() ? nullptr : &*at;
}

bool NameState::was_broken(std::string_view owner) const noexcept {
    return find_owner(broken, owner) != broken.end();
}

NameState::Waiter* NameState::waiter(std::string_view owner) noexcept {
    const auto at = find_owner(waiters, owner);
    return at == waiters.end() ? nullptr : &*at;
}

void NameState::leave_queue(std::string_view owner) {
    if (std::erase_if(waiters, [&](const Waiter& w) { return w.owner == owner; }) > 0)
        changed = true;
}

void NameState::erase(const Holding& h) {
    holders.erase(holders.begin() + (&h - holders.data()));
}

}  // namespace holdfast::spi
