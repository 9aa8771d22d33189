#include "history.hpp"

#include <algorithm>

namespace holdfast::sim {
namespace {

/// So long a pause is at least by any clock, and cut to whole milliseconds.
Nanos at_least(milliseconds pause) {
    const Nanos length = pause.count() * ms;
    return length - length / 100 - 2 * ms;
}

}  // namespace

std::uint64_t History::all_of(const Name& n) const {
    return n.options.kind == Kind::semaphore ? std::max(n.options.limit, n.next_limit) : many;
}

std::uint64_t History::units(const Grant& g) const {
    if (g.belief == nullptr) return g.units;
    if (world_.names[g.name].options.kind == Kind::semaphore) return g.belief->lease->permits();
    return g.belief->lease->mode() == Mode::shared ? 1 : many;
}

const History::Grant* History::find(const std::string& owner) const {
    const auto at = std::find_if(grants_.rbegin(), grants_.rend(),
                                 [&](const Grant& g) { return g.owner == owner; });
    return at == grants_.rend() ? nullptr : &*at;
}

bool History::meets(const Order& o, const Grant& g) const {
    return o.name == g.name && (o.owner.empty() || o.owner == g.owner) && o.since <= g.until &&
           g.begun <= o.until;
}

bool History::is_ordered(const Grant& g, Order::Kind kind) const {
    return std::any_of(orders_.begin(), orders_.end(),
                       [&](const Order& o) { return o.kind == kind && meets(o, g); });
}

Nanos History::end_of(const Grant& g) const {
    if (g.belief == nullptr) return 0;
    const auto shown = g.belief->lease->valid_until().time_since_epoch().count();
    return g.belief->process->when(shown);
}

Nanos History::closed_until(const Grant& g) const {
    if (is_ordered(g, Order::Kind::break_now)) return 0;
    // Where it was broken, its value stays after its release, and an operator may free that.
    if (is_ordered(g, Order::Kind::break_) && may_be_broken(g.name, g.until, true)) return 0;
    const LockOptions& o = world_.names[g.name].options;
    const Nanos by_grant = o.min_hold > milliseconds(0) ? g.from + at_least(o.min_hold) : 0;
    if (g.belief == nullptr) return by_grant;
    const Nanos delay = o.lock_delay > milliseconds(0) ? at_least(o.lock_delay) : 0;
    return std::max(by_grant, end_of(g) + delay);
}

Nanos History::closed_until(std::size_t name) const {
    Nanos last = 0;
    for (const Grant& g : grants_)
        if (g.name == name) last = std::max(last, closed_until(g));
    return last;
}

std::string History::granted(const Belief& b, Nanos asked, bool fresh) {
    const Nanos now = world_.kernel.now(), ttl = world_.ttl.count() * ms;
    const Name& n = world_.names[b.name];
    // One that was let go keeps what an operator did to it until its release has ended.
    std::erase_if(grants_, [&](const Grant& g) {
        return g.belief == nullptr && std::max(g.until, closed_until(g)) < now - latest;
    });
    Grant mine{&b, b.name, b.owner, 0, asked, asked, now, b.process->frozen};
    // A renewal may have come meanwhile where the call was long in ending.
    const auto valid_until = b.lease->valid_until().time_since_epoch().count();
    const Nanos granted = b.process->when(valid_until - ttl);
    fresh = fresh && b.process->late_until() <= asked;
    if (fresh && granted > now - ttl / 4) mine.from = std::max(asked, std::min(granted, now));
    std::uint64_t sum = units(mine);
    std::string others;
    for (const Grant& g : grants_) {
        if (g.name != b.name || g.owner == b.owner || closed_until(g) <= now) continue;
        sum += units(g);
        others += " " + g.owner.substr(0, 6) + " until " + std::to_string(closed_until(g) / us);
    }
    grants_.push_back(mine);
    if (world_.may_overlap()) return {};
    // What was granted for long may be lost by now.
    if (!fresh && !b.lease->valid()) return {};
    // One that an operator has freed before its client learnt of it may be beside others.
    if (sum <= all_of(n) || is_ordered(mine, Order::Kind::break_now)) return {};
    return b.owner.substr(0, 6) + " is granted " + n.text + ", which is closed:" + others;
}

void History::let_go(const Belief& b) {
    for (Grant& g : grants_)
        if (g.belief == &b) {
            g.units = units(g);
            g.belief = nullptr;
            g.until = world_.kernel.now() + latest;
        }
}

void History::released(const std::string& owner) {
    for (Grant& g : grants_)
        if (g.owner == owner && g.belief == nullptr) g.until = world_.kernel.now();
}

void History::comes_back(const Belief& b) {
    for (Grant& g : grants_)
        if (g.owner == b.owner) {
            g.belief = &b;
            g.until = never;
        }
}

Order& History::begin(Order o) {
    std::erase_if(orders_,
                  [&](const Order& old) { return old.until < world_.kernel.now() - 60 * second; });
    breaks_ += o.kind != Order::Kind::ask;
    o.since = world_.kernel.now();
    return orders_.emplace_back(std::move(o));
}

void History::ended(Order& o, bool answered) {
    o.until = world_.kernel.now() + (answered ? 0 : latest);
}

void History::broken(const std::string& owner, Nanos since, Nanos by) {
    for (Grant& g : grants_) {
        // The break may have met an earlier grant of the same call, of which its client did not
        // know yet.
        if (g.owner != owner || g.learnt >= since) continue;
        // Where no renewal is sent or answered it need not hear of it before its end, which a
        // server may have set later than a ttl from now.
        if (!world_.calm || !world_.names[g.name].options.renew)
            by = std::max(by, end_of(g) + world_.slack());
        g.lost_by = std::min(g.lost_by, by);
    }
}

void History::asked(const std::string& owner) {
    // With the next renewal, unless it has just been sent; where the server set a longer time than
    // was asked for, that is before the end of it.
    const Nanos next = world_.kernel.now() + world_.ttl.count() * ms / 3 * 101 / 100;
    const Nanos answer = world_.request_timeout.count() * ms + 50 * ms;
    for (Grant& g : grants_)
        if (g.owner == owner) g.asked_by = std::min(g.asked_by, std::max(next + answer, end_of(g)));
}

bool History::may_be_broken(const Belief& b, bool now) const {
    const Grant* g = find(b.owner);
    return g != nullptr && (is_ordered(*g, Order::Kind::break_now) ||
                            (!now && is_ordered(*g, Order::Kind::break_)));
}

bool History::may_be_broken(std::size_t name, Nanos from, bool now) const {
    return std::any_of(orders_.begin(), orders_.end(), [&](const Order& o) {
        const bool breaks =
            o.kind == Order::Kind::break_now || (!now && o.kind == Order::Kind::break_);
        return breaks && o.name == name && o.until >= from;
    });
}

std::string History::contradicts(const Belief& b) const {
    const Grant* g = find(b.owner);
    if (g == nullptr || g->belief == nullptr) return {};
    const Nanos now = world_.kernel.now();
    const LockOptions& o = world_.names[b.name].options;
    if (now > g->lost_by) return "it was broken";
    const Nanos runs = now - g->learnt - (b.process->frozen - g->frozen);
    const Nanos most = o.max_hold == forever ? never : o.max_hold.count() * ms;
    if (most < never && runs > most + most / 100 + world_.slack()) return "for more than max_hold";
    const bool asked = b.asked.stop_requested();
    if (asked && !is_ordered(*g, Order::Kind::ask)) return "it is asked to release, by nobody";
    if (!asked && world_.calm && o.renew && now > g->asked_by + world_.slack())
        return "it was asked to release, and does not know";
    return {};
}

}  // namespace holdfast::sim
