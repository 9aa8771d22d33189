// What a worker does with several locks at once: it acquires all or none, holds them as one set,
// and is told when the first of them is lost.
#include <algorithm>
#include <memory>
#include <optional>

#include "calls.hpp"
#include "listener.hpp"
#include "succession.hpp"

namespace holdfast::sim {

/// What the holder of a set hears of its loss; outlives it.
struct Worker::SetEars {
    Told stopped, completed;
    Running asked;
    bool asks = false;
};

Worker::Parts Worker::random_parts() {
    std::vector<std::size_t> names;
    for (std::size_t i = 0; i < world_.names.size(); ++i)
        if (!world_.names[i].elects) names.push_back(i);
    for (std::size_t i = names.size(); i > 1; --i)
        std::swap(names[i - 1], names[random().below(i)]);
    names.resize(2 + random().below(names.size() - 1));
    if (random().chance(50)) names.push_back(names.front());  // one lock twice is acquired once
    Parts out;
    for (const std::size_t name : names) {
        const AcquireOptions o = random_options(name);
        out.limits.push_back(limit_of(name));
        out.parts.push_back(out.names.empty() || name != out.names.front()
                                ? Part(lock_of(name), o.mode, o.permits)
                                : Part(out.parts.front()));
        out.names.push_back(name);
    }
    return out;
}

void Worker::gather() {
    const Parts parts = random_parts();
    const Since since = begin();
    for (const std::size_t name : parts.names)
        ++world_.unseen_[name];
    Succession::Set& set = world_.succession_->begin(parts.names);
    auto [ec, all] = acquire_set(parts, since);
    world_.succession_->ended(set, ec);
    for (std::size_t i = 0; i < parts.names.size(); ++i) {
        --world_.unseen_[parts.names[i]];
        world_.hinder(parts.names[i]);
        if (!ec) continue;
        world_.succession_->failed(user_.process, parts.names[i], parts.parts[i].mode,
                                   since.moment);
        // What it had may be closed for a while, by min_hold or since it was lost.
        const LockOptions& of = world_.names[parts.names[i]].options;
        const Nanos kept = (world_.ttl + of.lock_delay).count() * ms;
        const Nanos closed = std::max(of.min_hold.count() * ms, world_.deployment_->lasts(kept));
        Nanos& lapse = world_.lapses_[parts.names[i]];
        lapse = std::max(lapse, world_.kernel.now() + closed + closed / 50 + 5 * ms);
    }
    if (!ec) hold_set(std::move(all), parts, since.moment);
}

std::pair<error_code, LeaseSet> Worker::acquire_set(const Parts& parts, const Since& since) {
    std::string text;
    for (std::size_t i = 0; i < parts.names.size(); ++i)
        text += " " + world_.names[parts.names[i]].text +
                (parts.parts[i].mode == Mode::shared ? ", shared" : "");
    AcquireAllOptions o;
    o.wait = random_wait();
    const Nanos wait = std::min<Nanos>(o.wait.count(), 60'000) * ms;
    const bool blocking = random().chance(400);
    const Nanos cancel_after =
        random().chance(200) ? random().between(0, std::min(wait, 10 * second)) : never;
    trace("acquires all of" + text + (o.wait == forever ? ", for ever" : ", waits " + words(wait)));
    auto out = call<LeaseSet>(
        blocking, cancel_after,
        [&](std::stop_token stop) { return acquire_all(parts.parts, o, std::move(stop)); },
        [&](auto handler) { async_acquire_all(parts.parts, o, std::move(handler)); });
    trace("acquires all of" + text + ": " + (out.first ? out.first.message() : "granted"));
    const Nanos one_request = world_.request_timeout.count() * ms * world_.deployment_->time_outs();
    const auto count = static_cast<Nanos>(o.wait.count() == 0 ? parts.names.size() : 1);
    if (o.wait != forever) took(since, wait + count * one_request, "an acquisition of all");
    if (out.first == errc::cancelled)
        took(since, cancel_after + (blocking ? one_request : 0), "a cancelled acquisition of all");
    // A part may be lost meanwhile.
    const bool may_lose = std::any_of(parts.names.begin(), parts.names.end(), [&](std::size_t i) {
        const LockOptions& options = world_.names[i].options;
        return !world_.calm || !options.renew || options.max_hold < forever ||
               world_.history_->may_be_broken(i, since.moment);
    });
    if (out.first != errc::lost || !may_lose)
        judge({parts.names, o.wait, since}, out.first, cancel_after < never);
    return out;
}

void Worker::hold_set(LeaseSet set, const Parts& parts, Nanos asked) {
    Kernel& k = world_.kernel;
    if (set.size() != parts.names.size()) world_.fail("a set has another number of parts");
    std::list<Belief> beliefs;
    for (std::size_t i = 0; i < set.size(); ++i) {
        const Lease& lease = set[i];
        const std::size_t name = parts.names[i];
        if (lease.name() != world_.names[name].text) world_.fail("a part has another name");
        const auto first = std::find(parts.names.begin(), parts.names.end(), name);
        if (first != parts.names.begin() + static_cast<std::ptrdiff_t>(i)) continue;
        believe(beliefs.emplace_back(lease, user_.process, name, parts.limits[i]), asked, false);
    }
    const Nanos due = k.now() - world_.slack();
    for (const Belief& b : beliefs)
        if (user_.process.late_until() < asked &&
            user_.process.when(b.lease->valid_until().time_since_epoch().count()) < due)
            world_.fail("a set was granted without a part");
    const auto ears = std::make_shared<SetEars>();
    ears->asked = Running::of(user_.process, k.now());
    ears->asks = random().chance(500);
    std::stop_callback on_loss(set.lost(), [ears, &p = user_.process] { ears->stopped.now(p); });
    if (ears->asks)
        set.async_lost([ears, &p = user_.process](error_code ec) { ears->completed.now(p, ec); });
    const Nanos until = k.now() + random().between(0, 2 * world_.ttl.count() * ms);
    while (k.now() < until && set.valid() && !world_.stopping_) {
        k.rest(std::min(until - k.now(), random().between(10 * ms, 500 * ms)));
        check_set(set, beliefs);
    }
    // What is lost is told a moment later.
    if (!set.valid()) k.rest(2 * world_.slack());
    check_told(*ears, beliefs, set);
    release_set(std::move(set), beliefs);
}

/// It is valid for as long as all parts are. Each is asked once: time passes. So what is true for
/// ever is asked before what may end.
void Worker::check_set(const LeaseSet& set, const std::list<Belief>& beliefs) {
    const bool before = set.valid();
    const bool all = std::all_of(beliefs.begin(), beliefs.end(),
                                 [](const Belief& b) { return b.lease->valid(); });
    const error_code lost = set.lost_reason();
    const bool after = set.valid();
    if ((all && !before) || (after && !all))
        world_.fail(user_.process.name + ": a set is " + (before ? "" : "not ") +
                    "valid, and its parts are otherwise");
    boot_clock::time_point first = boot_clock::time_point::max();
    for (const Belief& b : beliefs)
        first = std::min(first, b.lease->valid_until());
    if (after && set.valid_until() < first)
        world_.fail(user_.process.name + ": a set ends before its parts");
    if (after && lost) world_.fail(user_.process.name + ": a valid set is lost: " + lost.message());
}

/// The first loss of a part is told once, in time, by each way.
void Worker::check_told(const SetEars& ears, const std::list<Belief>& beliefs,
                        const LeaseSet& set) {
    const bool lost = std::any_of(beliefs.begin(), beliefs.end(), [](const Belief& b) {
        return b.lease->state() == LeaseState::lost;
    });
    const Running now = Running::of(user_.process, world_.kernel.now());
    const std::string who = user_.process.name + ": the loss of a set ";
    if (ears.stopped.times > 1 || ears.completed.times > 1) world_.fail(who + "was told twice");
    if (!lost && (ears.stopped.times > 0 || ears.completed.times > 0))
        world_.fail(who + "was told, and it has all parts");
    std::optional<Running> first;
    for (const Belief& b : beliefs)
        if (const auto& when = b.listener->ended(); when && (!first || when->at < first->at))
            first = when;
    if (!lost || !first || user_.killed || first->until(now) < world_.slack()) return;
    const auto late = [&](const Told& told) {
        return told.times == 0 ||
               std::min(first->until(told.when), ears.asked.until(told.when)) > world_.slack();
    };
    if (late(ears.stopped) || (ears.asks && late(ears.completed)))
        world_.fail(who + "was not told in time");
    if (!set.lost_reason() || (ears.asks && ears.completed.what != set.lost_reason()))
        world_.fail(who + "has another reason: " + set.lost_reason().message());
}

void Worker::release_set(LeaseSet set, std::list<Belief>& beliefs) {
    const bool valid = set.valid(), dropped = random().chance(300);
    bool broken = false;
    for (Belief& b : beliefs) {
        broken = broken || world_.history_->may_be_broken(b, false);
        b.remove(*b.lease, Outcome::done);
        leave(b, Outcome::done, b.lease->valid());
    }
    trace(dropped ? "drops a set" : "releases a set");
    const Since since = begin();
    ReleaseResult answer{};
    if (dropped)
        set = LeaseSet();
    else
        answer = ask_release(set, Outcome::done);
    if (!dropped) trace("releases a set: " + std::string(to_string(answer)));
    const auto count = static_cast<Nanos>(beliefs.size());
    took(since, count * world_.request_timeout.count() * ms, "a release of all");
    const bool lost = set.state() == LeaseState::lost;
    if (!dropped && set.state() != LeaseState::released && !lost)
        world_.fail("a set was released, and has a part");
    if (world_.calm && valid && !broken && !dropped && !lost && answer != ReleaseResult::released)
        world_.fail("a release of all was answered: " + std::string(to_string(answer)));
    const bool told = !dropped && answer == ReleaseResult::released;
    for (Belief& b : beliefs) {
        world_.hinder(b.name);
        b.listener->left(std::nullopt, b);
        if (told) world_.succession_->answered(b.owner, answer, false);
        if (told) world_.history_->released(b.owner);
        owe(b);
    }
}

}  // namespace holdfast::sim
