// What an operator does at the side of those that take locks.
#include <algorithm>

#include "worker.hpp"

namespace holdfast::sim {

void Worker::operate() {
    const auto name = static_cast<std::size_t>(random().below(world_.names.size()));
    std::vector<const Belief*> there;
    for (const Belief* b : world_.beliefs_)
        if (b->name == name && !b->process->dead) there.push_back(b);
    Order order;
    order.name = name;
    HolderFilter which;
    if (!there.empty() && random().chance(700)) {
        const Belief& one = *there[random().below(there.size())];
        const FencingToken token = one.lease->fencing_token();
        if (token.value != 0 && one.lease->mode() == Mode::exclusive && random().chance(500))
            which.if_token = token;
        else
            which.owner = one.owner;
        order.owner = one.owner;
    }
    if (random().chance(400)) {
        order.kind = Order::Kind::ask;
        if (user_.client->capabilities().has(Capability::release_request))
            ask(std::move(order), which);
        return;
    }
    if (!user_.client->capabilities().has(Capability::break_lock)) return;
    BreakOptions o;
    o.now = random().chance(400);
    o.if_token = which.if_token;
    o.owner = which.owner;
    o.note = "sim";
    order.kind = o.now ? Order::Kind::break_now : Order::Kind::break_;
    break_lock(std::move(order), o);
}

void Worker::judge_order(error_code ec, const std::string& what, bool by_token) {
    if (user_.killed || !ec) return;
    const bool faulty = ec == errc::unavailable || ec == errc::in_doubt;
    // Where nobody keeps the tokens of readers, a token says nothing of whom it means.
    const bool expected = ec == errc::not_held || ec == errc::no_quorum ||
                          (by_token && ec == errc::not_supported) ||
                          (ec == errc::kind_mismatch &&
                           (world_.deployment_->changes_limits() || world_.has(Feature::limits)));
    if (!expected && (world_.calm || !faulty))
        world_.fail(user_.process.name + ": " + what + " ended with: " + ec.message());
}

/// Makes the call, and holds its course to what any of them promises.
template <class F>
auto Worker::give(Order& order, const std::string& what, bool by_token, F call) {
    const std::string text = world_.names[order.name].text;
    trace(what + " of " + text + " " + order.owner.substr(0, 6));
    const Since since = begin();
    auto done = call(text);
    const error_code ec = done ? error_code() : done.error();
    // Of a majority some nodes may have done it.
    world_.history_->ended(order, done || ec == errc::not_held);
    trace(what + " of " + text + ": " + (done ? std::to_string(done->size()) : ec.message()));
    took(since, world_.request_timeout.count() * ms, what);
    judge_order(ec, what, by_token);
    return done;
}

void Worker::break_lock(Order order, const BreakOptions& o) {
    Order& mine = world_.history_->begin(std::move(order));
    const auto done =
        give(mine, o.now ? "a break with now" : "a break", o.if_token.has_value(),
             [&](const std::string& text) { return user_.client->break_lock(text, o); });
    if (!done) return;
    for (const Broken& b : *done) {
        if (!mine.owner.empty() && b.holder.owner != mine.owner)
            world_.fail("a break has hit another: " + b.holder.owner);
        // A renewal may have been under way.
        const Nanos still = std::max<Nanos>(world_.ttl.count(), b.free_in.count()) * ms;
        world_.history_->broken(b.holder.owner, mine.since,
                                world_.kernel.now() + still + still / 100 + world_.slack_);
    }
}

void Worker::ask(Order order, const HolderFilter& which) {
    Order& mine = world_.history_->begin(std::move(order));
    const auto done =
        give(mine, "a request for a release", which.if_token.has_value(),
             [&](const std::string& text) { return user_.client->request_release(text, which); });
    if (!done) return;
    for (const Holder& h : *done)
        world_.history_->asked(h.owner);
}

}  // namespace holdfast::sim
