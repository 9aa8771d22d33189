// What a worker does with a grant: it holds and renews it, makes handles of it, and lets go of
// each.
#include <algorithm>
#include <iterator>

#include "calls.hpp"
#include "listener.hpp"
#include "succession.hpp"

namespace holdfast::sim {

void Worker::hold(std::list<Lease> mine, Belief& belief, World::Owner* owner) {
    Kernel& k = world_.kernel;
    const Name& n = world_.names[belief.name];
    const auto take = [&](Lease handle) {
        mine.push_back(std::move(handle));
        belief.add(mine.back());
    };
    while (random().chance(600))
        belief.listener->ask(mine.front());
    const bool shares = world_.has(Feature::handles);
    if (random().chance(150) && !owner)
        if (auto other = share(mine.front())) take(std::move(*other));
    const Nanos until =
        k.now() + (random().chance(500) ? random().between(0, 60 * ms)
                                        : random().between(0, 2 * world_.ttl.count() * ms));
    while (k.now() < until && belief.lease->valid() && !world_.stopping_) {
        k.rest(std::min(until - k.now(), random().between(10 * ms, 500 * ms)));
        if (random().chance(50)) belief.listener->cancel();
        if (random().chance(150)) renew(mine.front(), belief);
        if (owner && random().chance(300))
            if (auto more = again(*owner, belief)) take(std::move(*more));
        if (!owner && shares && random().chance(200))
            if (auto other = share(mine.back())) take(std::move(*other));
        if (mine.size() > 1 && random().chance(150)) release_one(mine, belief, owner);
    }
    const bool bounded = n.options.max_hold < forever;
    if (world_.calm && n.options.renew && !belief.lease->valid() && !bounded &&
        !world_.history_->may_be_broken(belief, false))
        world_.fail(user_.process.name +
                    ": a lease was lost: " + belief.lease->lost_reason().message());
    if (random().chance(200)) belief.listener->ask(mine.front());
    // Its work stops late; until then the name is closed.
    const auto delay = n.options.lock_delay;
    if (!belief.lease->valid() && delay > milliseconds(0) && random().chance(700))
        k.rest(random().between(0, 2 * delay.count() * ms));
    while (!mine.empty()) {
        release_one(mine, belief, owner);
        if (shares && random().chance(300)) k.rest(random().between(0, world_.ttl.count() * ms));
    }
}

/// In any order.
void Worker::release_one(std::list<Lease>& mine, Belief& belief, World::Owner* owner) {
    const auto one = std::next(mine.begin(), static_cast<int>(random().below(mine.size())));
    release(*one, belief, owner);
    mine.erase(one);
}

std::optional<Lease> Worker::share(const Lease& lease) {
    auto made = lease.share();
    if (made) return std::move(*made);
    if (lease.valid()) world_.fail("a handle was refused: " + made.error().message());
    return std::nullopt;
}

/// By itself, or as a downgrade.
void Worker::renew(Lease& lease, Belief& belief) {
    const Name& n = world_.names[belief.name];
    if (lease.lost_reason() && lease.valid())
        world_.fail("a valid lease is lost: " + lease.lost_reason().message());
    if (!lease.valid()) return;
    if (lease.mode() == Mode::exclusive && n.options.kind == Kind::shared_mutex &&
        random().chance(500))
        return downgrade(lease, belief);
    const Since since = begin();
    const auto done = lease.renew();
    trace("renews " + n.text + ": " + (done ? "done" : done.error().message()));
    if (!done && world_.calm && lease.valid())
        world_.fail("a renewal failed: " + done.error().message());
    took(since, world_.request_timeout.count() * ms, "a renewal");
}

void Worker::downgrade(Lease& lease, Belief& belief) {
    // Another thread of its owner may just get a handle.
    if (belief.unsure()) return;
    const bool several = belief.handles.size() > 1;
    const Since since = begin();
    if (!several) {
        world_.succession_->downgraded(belief.owner, false);
        world_.hinder(belief.name);
    }
    const auto done = lease.downgrade();
    if (done && !several) world_.succession_->downgraded(belief.owner, true);
    const std::string name = world_.names[belief.name].text;
    trace("downgrades " + name + ": " + (done ? "done" : done.error().message()));
    if (several && (done || (lease.valid() && done.error() != errc::would_deadlock)))
        world_.fail("a downgrade beside other handles: " +
                    (done ? "done" : done.error().message()));
    // One renewal may be under way.
    took(since, several ? 0 : 2 * world_.request_timeout.count() * ms, "a downgrade");
}

void Worker::leave(Belief& belief, Outcome outcome, bool valid) {
    world_.succession_->let_go(belief, outcome, !valid);
    if (!valid) {
        const Nanos ttl = world_.ttl.count() * ms;
        const Nanos delay = world_.names[belief.name].options.lock_delay.count() * ms;
        const Nanos shown = belief.lease->valid_until().time_since_epoch().count();
        const Nanos end = user_.process.when(shown) + world_.deployment_->lasts(ttl + delay) - ttl;
        Nanos& lapse = world_.lapses_[belief.name];
        lapse = std::max(lapse, end + (ttl + delay) / 50 + 5 * ms);
    }
    world_.history_->let_go(belief);
    std::erase(world_.beliefs_, &belief);
}

void Worker::owe(const Belief& belief) {
    // The server keeps what is broken, or was held for too long, until its end.
    const bool bounded = world_.names[belief.name].options.max_hold < forever;
    if (!bounded && !world_.history_->may_be_broken(belief, false))
        world_.owed_.push_back({belief.owner, belief.name, &user_, world_.kernel.now()});
}

void Worker::release(Lease& lease, Belief& belief, World::Owner* owner) {
    if (owner) ++owner->leaving;
    let_go(lease, belief, owner);
    if (owner) --owner->leaving;
}

void Worker::let_go(Lease& lease, Belief& belief, World::Owner* owner) {
    const bool broken = world_.history_->may_be_broken(belief, false);
    const bool valid = lease.valid();
    const bool dropped = random().chance(200);
    const auto outcome = !dropped && random().chance(100) ? Outcome::abandoned : Outcome::done;
    const bool last = belief.remove(lease, outcome);
    if (belief.term != nullptr) *belief.term->leads = nullptr;
    if (last) leave(belief, belief.outcome, valid);
    // Else nobody knows yet what became of it.
    const bool ends = last && !(owner && left(*owner));
    const std::string text = world_.names[belief.name].text + (last ? "" : ", one handle");
    const Since since = begin();
    if (dropped) {
        trace("drops " + text);
        lease = Lease();
        world_.hinder(belief.name);
        if (!ends) return;
        belief.listener->left(std::nullopt, belief);
        return owe(belief);
    }
    trace("releases " + text);
    ++belief.releasing;
    const ReleaseResult answer = ask_release(lease, outcome);
    --belief.releasing;
    trace("releases " + text + ": " + std::string(to_string(answer)));
    world_.hinder(belief.name);
    const error_code lost = lease.lost_reason();
    if (ends) belief.listener->left(lost, belief);
    // Of several threads that let go at once any may be the last one.
    const bool alone = ends && belief.releasing == 0;
    if (alone) world_.succession_->answered(belief.owner, answer, static_cast<bool>(lost));
    if (alone && answer != ReleaseResult::unreachable) world_.history_->released(belief.owner);
    if (alone && belief.term != nullptr && answer == ReleaseResult::released)
        belief.term->gone = world_.kernel.now();
    if (alone && lost && answer == ReleaseResult::released)
        world_.fail("a lost lease was released: " + lost.message());
    const bool at_once = !belief.handles.empty();
    took(since, at_once ? 0 : world_.request_timeout.count() * ms, "a release");
    if (answer == ReleaseResult::unreachable && belief.handles.empty()) owe(belief);
    if ((world_.calm || at_once) && valid && !lost && !broken && answer != ReleaseResult::released)
        world_.fail("a release was answered: " + std::string(to_string(answer)));
}

}  // namespace holdfast::sim
