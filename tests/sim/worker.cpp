#include "worker.hpp"

#include <algorithm>
#include <iterator>

#include "calls.hpp"
#include "listener.hpp"
#include "succession.hpp"

namespace holdfast::sim {
namespace {

/// What a last request may still take, of a call whose time is nearly over.
constexpr Nanos last_try = 50 * ms;

std::string words(const error_code& ec) {
    return ec ? ec.message() : "granted";
}

}  // namespace

std::string words(Nanos n) {
    return std::to_string(n / ms) + " ms";
}

Worker::Since Worker::begin() const {
    const Nanos now = world_.kernel.now();
    return {now, Running::of(user_.process, now)};
}

void Worker::took(const Since& since, Nanos bound, const std::string& what) {
    if (user_.killed) return;
    const Nanos time = since.runs.until({world_.kernel.now(), user_.process.frozen});
    if (time > bound + bound / 100 + world_.slack_)
        world_.fail(user_.process.name + ": " + what + " took " + words(time) + " of " +
                    words(bound));
}

void Worker::trace(const std::string& what) {
    if (world_.kernel.tracing) world_.trace(world_.kernel.current_name(), what);
}

void Worker::run() {
    while (!world_.stopping_) {
        world_.kernel.rest(random().between(0, 400 * ms));
        if (world_.stopping_) continue;
        if (world_.operated_ && random().chance(80))
            operate();
        else if (world_.has(Feature::sets) && random().chance(300))
            gather();
        else
            cycle();
    }
}

void Worker::judge(const Asked& asked, error_code ec, bool cancelled) {
    if (user_.killed) return;
    const bool once = asked.wait == milliseconds::zero();
    bool expected = !ec || (ec == errc::contended && once) || (ec == errc::timed_out && !once) ||
                    (ec == errc::cancelled && cancelled);
    for (const std::size_t name : asked.names)
        expected =
            expected ||
            (ec == errc::kind_mismatch && world_.names[name].changed(world_.kernel.now())) ||
            (ec == errc::revoked && world_.history_->may_be_broken(name, asked.since.moment));
    const bool faulty = ec == errc::unavailable || ec == errc::in_doubt || ec == errc::no_quorum;
    // A session and a chain of requests take longer than the shortest waits.
    const Nanos passed = world_.kernel.now() - asked.since.moment;
    const Nanos left = asked.wait == forever ? never : asked.wait.count() * ms - passed;
    const bool hurried =
        !once && (asked.wait < milliseconds(100) || (asked.names.size() > 1 && left < 100 * ms));
    if (!expected && ((world_.calm && !hurried) || !faulty))
        world_.fail(user_.process.name + ": an acquisition ended with: " + ec.message());
}

milliseconds Worker::random_wait() {
    switch (random().below(10)) {
        case 0:
        case 1:
            return milliseconds::zero();
        case 2:
        case 3:
        case 4:
            return milliseconds(random().between(20, 500));
        case 5:
            return forever;
        default:
            return milliseconds(random().between(500, 8000));
    }
}

/// How a worker asks for the lock itself.
Approach Worker::approach_of(Lock& lock) {
    return {[&lock](const AcquireOptions& o, std::stop_token stop) {
                return lock.acquire(o, std::move(stop));
            },
            [&lock](const AcquireOptions& o, Approach::Handler handler) {
                lock.async_acquire(o, std::move(handler));
            }};
}

Lock& Worker::lock_of(std::size_t name) {
    return *(world_.names[name].changed(world_.kernel.now()) ? user_.next_locks
                                                             : user_.locks)[name];
}

std::uint32_t Worker::limit_of(std::size_t name) const {
    const Name& n = world_.names[name];
    return n.changed(world_.kernel.now()) ? n.next_limit : n.options.limit;
}

AcquireOptions Worker::random_options(std::size_t name) {
    const Name& n = world_.names[name];
    AcquireOptions o;
    o.wait = random_wait();
    if (n.options.kind == Kind::shared_mutex && random().chance(600)) o.mode = Mode::shared;
    if (n.options.kind == Kind::semaphore)
        o.permits = 1 + static_cast<std::uint32_t>(random().below(limit_of(name)));
    return o;
}

void Worker::cycle() {
    const auto name = static_cast<std::size_t>(random().below(world_.names.size()));
    const Name& n = world_.names[name];
    if (n.elects) return elect(name);
    if (user_.reentrant[name] && random().chance(600)) return own(name);
    const AcquireOptions o = random_options(name);
    std::optional<Inspection> before;
    const Nanos asked = world_.kernel.now();
    if (world_.deployment_->one_machine() && random().chance(300) && n.next_limit == 0)
        before = look(n);
    const std::uint32_t limit = limit_of(name);
    auto [ec, lease] = acquire(approach_of(lock_of(name)), o, name);
    if (ec) return world_.succession_->failed(user_.process, name, o.mode, asked);
    std::list<Lease> mine;
    mine.push_back(std::move(lease));
    Belief belief(mine.back(), user_.process, name, limit);
    believe(belief, asked);
    if (before) check_order(*before, asked, mine.back(), n);
    hold(std::move(mine), belief, nullptr);
}

void Worker::believe(Belief& belief, Nanos asked, bool fresh) {
    const std::size_t name = belief.name;
    const Name& n = world_.names[name];
    const Lease& lease = *belief.lease;
    belief.add(lease);
    const Capabilities& can = user_.client->capabilities();
    auto why = world_.history_->granted(belief, asked, fresh);
    if (why.empty() && can.has(Capability::previous_holder))
        why = world_.succession_->granted(belief, asked);
    else if (why.empty() && lease.previous_holder() != PreviousHolder::unknown)
        why = "previous_holder() is known";
    if (!why.empty()) world_.fail(user_.process.name + ": " + why);
    if (const Nanos closed = n.options.min_hold.count() * ms; closed > 0)
        world_.lapses_[name] =
            std::max(world_.lapses_[name], world_.kernel.now() + closed + closed / 50 + 5 * ms);
    belief.listener = std::make_shared<Listener>(world_, user_, belief, asked);
    world_.listeners_.push_back(belief.listener);
    world_.beliefs_.push_back(&belief);
    ++world_.grants_;
    if (!can.has(Capability::fencing) || n.options.kind == Kind::semaphore) return;
    const std::uint64_t token = lease.fencing_token().value;
    const bool exclusive = lease.mode() == Mode::exclusive;
    auto& highest = exclusive ? world_.highest_[name] : world_.highest_exclusive_[name];
    // A reader's is that of the last writer that the server knows of.
    const bool judged = !world_.may_overlap() && (exclusive || !world_.deployment_->may_forget());
    if (token <= highest && lease.valid() && judged &&
        !world_.history_->may_be_broken(belief, true))
        world_.fail(user_.process.name + ": the token goes back: " + std::to_string(token));
    world_.highest_[name] = std::max(world_.highest_[name], token);
    if (exclusive) world_.highest_exclusive_[name] = token;
}

std::optional<Inspection> Worker::look(const Name& n) {
    auto seen = user_.client->inspect(n.text);
    return seen ? std::optional(std::move(*seen)) : std::nullopt;
}

/// Where only clients see the line: who stood in it before this one was asked for, and stands there
/// still, fits beside it and those that hold all the while.
void Worker::check_order(const Inspection& before, Nanos asked, const Lease& lease, const Name& n) {
    const auto now = look(n);
    // A waiter whose machine stands still for long is passed over.
    for (const auto& u : world_.users)
        if (!now || u->killed || u->process.late_until() > asked) return;
    const bool permits = n.options.kind == Kind::semaphore;
    const std::uint64_t of = permits ? n.options.limit : many;
    const auto units = [&](Mode mode, std::uint32_t count) -> std::uint64_t {
        return permits ? count : mode == Mode::shared ? 1 : many;
    };
    std::uint64_t sum = units(lease.mode(), lease.permits());
    const auto add = [&](const std::vector<Holder>& then, const std::vector<Holder>& still) {
        // As they are now: a writer may be a reader by a downgrade.
        for (const Holder& one : still)
            if (one.owner != lease.owner_id() &&
                std::any_of(then.begin(), then.end(),
                            [&](const Holder& h) { return h.owner == one.owner; }))
                sum += units(one.mode, one.permits);
    };
    add(before.waiters, now->waiters);
    if (sum > units(lease.mode(), lease.permits())) add(before.holders, now->holders);
    if (sum > of) world_.fail(user_.process.name + ": it has passed others in line");
}

Approach::Answer Worker::acquire(const Approach& approach, const AcquireOptions& o,
                                 std::size_t name, bool in_line) {
    const Nanos wait = std::min<Nanos>(o.wait.count(), 60'000) * ms;
    const Nanos cancel_after =
        random().chance(200) ? random().between(0, std::min(wait, 10 * second)) : never;
    const bool blocking = random().chance(400);
    trace(approach.who + (blocking ? "acquires " : "acquires, asynchronously, ") +
          world_.names[name].text + (o.mode == Mode::shared ? ", shared" : "") +
          (o.permits > 1 ? ", " + std::to_string(o.permits) + " permits" : "") +
          (o.wait == forever ? ", for ever" : ", waits " + words(wait)));
    const Asked asked{{name}, o.wait, begin()};
    const Nanos since = asked.since.moment;
    auto waits = world_.waiting_.end();
    if (in_line) {
        world_.waiting_.push_back(
            {&user_, name, o.mode, o.permits, since, since + std::min(wait, cancel_after)});
        waits = std::prev(world_.waiting_.end());
    } else {
        ++world_.unseen_[name];
    }
    auto out = call<Lease>(
        blocking, cancel_after,
        [&](std::stop_token stop) { return approach.acquire(o, std::move(stop)); },
        [&](auto handler) { approach.start(o, std::move(handler)); });
    if (in_line)
        world_.waiting_.erase(waits);
    else
        --world_.unseen_[name];
    world_.hinder(name, out.first || !in_line ? since : 0);
    if (!out.first && in_line) world_.check_passed(out.second, name, since);
    trace("acquires " + world_.names[name].text + ": " + words(out.first) +
          (out.first ? ""
                     : " " + std::string(out.second.owner_id().substr(0, 6)) + ", token " +
                           std::to_string(out.second.fencing_token().value)));
    const Nanos one_request = world_.request_timeout.count() * ms * world_.deployment_->time_outs();
    if (o.wait != forever)
        took(asked.since, std::max(wait, one_request) + last_try * world_.deployment_->time_outs(),
             "an acquisition");
    if (out.first == errc::cancelled)
        took(asked.since, cancel_after + (blocking ? one_request : 0), "a cancelled acquisition");
    if (!approach.expects || !approach.expects(out.first))
        judge(asked, out.first, cancel_after < never);
    return out;
}

}  // namespace holdfast::sim
