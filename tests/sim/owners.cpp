// What a worker does for the owners of a Reentrant: it acquires what they hold already, and what
// another thread of its client acquires for the same owner just then.
#include <algorithm>
#include <utility>

#include "calls.hpp"
#include "listener.hpp"
#include "succession.hpp"

namespace holdfast::sim {

void Worker::own(std::size_t name) {
    const int number = random().chance(700) ? 0 : 1;
    World::Owner& owner = user_.owners[{name, number}];
    owner.name = name;
    owner.number = number;
    const AcquireOptions o = random_options(name);
    auto [ec, lease] = acquire_as(owner, o);
    if (ec) {
        --owner.asking;
        return;
    }
    std::list<Lease> mine;
    mine.push_back(std::move(lease));
    const auto belief = join(owner, mine.back());
    --owner.asking;
    hold(std::move(mine), *belief, &owner);
}

Approach::Answer Worker::acquire_as(World::Owner& owner, const AcquireOptions& o) {
    Reentrant<int>& lock = *user_.reentrant[owner.name];
    const Nanos asked = world_.kernel.now();
    if (owner.asking++ == 0)
        owner.since = asked;
    else
        owner.met = asked;
    // It may have been lost, or held in the other mode, at any time meanwhile.
    const bool holds = owner.belief != nullptr, leaves = owner.leaving > 0;
    const bool in_line = !holds && owner.asking == 1;
    const Approach approach{
        [&](const AcquireOptions& options, std::stop_token stop) {
            return lock.acquire(owner.number, options, std::move(stop));
        },
        [&](const AcquireOptions& options, Approach::Handler handler) {
            lock.async_acquire(owner.number, options, std::move(handler));
        },
        [&](error_code ec) {
            if (std::max(owner.held, owner.met) < asked && !owner.belief && !leaves) return false;
            return ec == errc::lost || ec == errc::revoked ||
                   (ec == errc::would_deadlock && o.mode == Mode::exclusive);
        },
        "for owner " + std::to_string(owner.number) + " "};
    auto out = acquire(approach, o, owner.name, in_line);
    if (out.first) world_.succession_->failed(user_.process, owner.name, o.mode, asked);
    return out;
}

std::shared_ptr<Belief> Worker::join(World::Owner& owner, const Lease& lease) {
    // Another thread may join while this one asks the lease.
    const auto made = std::make_shared<Belief>(lease, user_.process, owner.name, 1);
    if (owner.belief) {
        if (owner.belief->owner != made->owner)
            world_.fail(user_.process.name + ": an owner has two grants: " + owner.belief->owner +
                        " and " + made->owner);
        owner.belief->add(lease);
        return owner.belief;
    }
    if (!owner.left || owner.left->owner != made->owner) {
        made->asking = &owner.asking;
        owner.belief = made;
        believe(*made, owner.since, false);
        return made;
    }
    const auto back = owner.belief = owner.left;
    back->add(lease);
    world_.history_->comes_back(*back);
    world_.succession_->comes_back(back->owner);
    const Nanos called = back->listener->called();  // it is the same grant
    back->listener = std::make_shared<Listener>(world_, user_, *back, called);
    world_.listeners_.push_back(back->listener);
    world_.beliefs_.push_back(back.get());
    return back;
}

std::optional<Lease> Worker::again(World::Owner& owner, const Belief& belief) {
    AcquireOptions o;
    o.wait = random_wait();
    const bool exclusive = belief.lease->mode() == Mode::exclusive;
    if (world_.names[owner.name].options.kind == Kind::shared_mutex && random().chance(500))
        o.mode = Mode::shared;
    const Since since = begin();
    auto [ec, lease] = acquire_as(owner, o);
    --owner.asking;
    took(since, 0, "an acquisition of what its owner holds");
    if (ec) {
        const bool deadlock = o.mode == Mode::exclusive && belief.lease->mode() == Mode::shared;
        if (belief.lease->valid() && !(deadlock && ec == errc::would_deadlock))
            world_.fail(user_.process.name + ": what its owner holds was refused: " + ec.message());
        return std::nullopt;
    }
    if (lease.owner_id() != belief.owner)
        world_.fail(user_.process.name + ": what its owner holds was granted again");
    if (!exclusive && o.mode == Mode::exclusive)
        world_.fail(user_.process.name + ": what its owner reads was granted to write");
    return std::move(lease);
}

bool Worker::left(World::Owner& owner) {
    owner.held = world_.kernel.now();
    owner.left = std::exchange(owner.belief, nullptr);
    if (owner.asking == 0) owner.left.reset();
    if (owner.left) std::erase(world_.listeners_, owner.left->listener);
    return owner.left != nullptr;
}

}  // namespace holdfast::sim
