#include "worker.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <iterator>
#include <stop_token>

#include "listener.hpp"
#include "succession.hpp"

namespace holdfast::sim {
namespace {

/// What a last request may still take, of a call whose time is nearly over.
constexpr Nanos last_try = 50 * ms;

std::string words(Nanos n) {
    return std::to_string(n / ms) + " ms";
}
std::string words(const error_code& ec) {
    return ec ? ec.message() : "granted";
}

}  // namespace

/// An asynchronous call, which may outlive the wait for it.
struct Worker::Call {
    Kernel* kernel = nullptr;
    Thread* waits = nullptr;
    unsigned ends = 0;
    error_code error;
    Lease lease;
    ReleaseResult released{};

    void ended() {
        ++ends;
        kernel->wake(waits);
    }
};

Worker::Since Worker::begin() const {
    return {world_.kernel.now(), user_.process.frozen};
}

void Worker::took(const Since& since, Nanos bound, const std::string& what) {
    if (user_.killed) return;
    const Nanos time = world_.kernel.now() - since.moment - (user_.process.frozen - since.frozen);
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
        else
            cycle();
    }
}

void Worker::judge(error_code ec, const AcquireOptions& o, std::size_t name, Nanos asked,
                   bool cancelled) {
    const Name& n = world_.names[name];
    if (user_.killed) return;
    const bool once = o.wait == milliseconds::zero();
    const bool expected = !ec || (ec == errc::contended && once) ||
                          (ec == errc::timed_out && !once) ||
                          (ec == errc::cancelled && cancelled) ||
                          (ec == errc::kind_mismatch && n.changed(world_.kernel.now())) ||
                          (ec == errc::revoked && world_.history_->may_be_broken(name, asked));
    const bool faulty = ec == errc::unavailable || ec == errc::in_doubt || ec == errc::no_quorum;
    // A session and a chain of requests take longer than the shortest waits.
    const bool hurried = !once && o.wait < milliseconds(100);
    if (!expected && ((world_.calm && !hurried) || !faulty))
        world_.fail(user_.process.name + ": an acquisition ended with: " + ec.message());
}

void Worker::cycle() {
    const auto name = static_cast<std::size_t>(random().below(world_.names.size()));
    const Name& n = world_.names[name];
    AcquireOptions o;
    switch (random().below(10)) {
        case 0:
        case 1:
            o.wait = milliseconds::zero();
            break;
        case 2:
        case 3:
        case 4:
            o.wait = milliseconds(random().between(20, 500));
            break;
        case 5:
            break;  // for ever
        default:
            o.wait = milliseconds(random().between(500, 8000));
    }
    if (n.options.kind == Kind::shared_mutex && random().chance(600)) o.mode = Mode::shared;
    const bool changed = n.changed(world_.kernel.now());
    const std::uint32_t limit = changed ? n.next_limit : n.options.limit;
    if (n.options.kind == Kind::semaphore)
        o.permits = 1 + static_cast<std::uint32_t>(random().below(limit));
    std::optional<Inspection> before;
    const Nanos asked = world_.kernel.now();
    if (world_.deployment_->one_machine() && random().chance(300)) before = look(n);
    auto [ec, lease] = acquire(*(changed ? user_.next_locks : user_.locks)[name], o, name);
    if (ec) return world_.succession_->failed(name, o.mode, asked);
    Belief belief{&lease, &user_.process,           name, std::string(lease.owner_id()),
                  limit,  lease.release_requested()};
    for (const auto& why :
         {world_.history_->granted(belief, asked), world_.succession_->granted(belief)})
        if (!why.empty()) world_.fail(user_.process.name + ": " + why);
    if (const Nanos closed = n.options.min_hold.count() * ms; closed > 0)
        world_.lapses_[name] =
            std::max(world_.lapses_[name], world_.kernel.now() + closed + closed / 50 + 5 * ms);
    belief.listener = std::make_shared<Listener>(world_, user_, belief, asked);
    world_.listeners_.push_back(belief.listener);
    world_.beliefs_.push_back(&belief);
    if (before) check_order(*before, asked, lease, n);
    hold(std::move(lease), belief);
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
        if (!now || u->killed || u->process.frozen_until > asked) return;
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

std::pair<error_code, Lease> Worker::acquire(Lock& lock, const AcquireOptions& o,
                                             std::size_t name) {
    const bool blocking = random().chance(400);
    const Nanos wait = std::min<Nanos>(o.wait.count(), 60'000) * ms;
    const Nanos cancel_after =
        random().chance(200) ? random().between(0, std::min(wait, 10 * second)) : never;
    trace(std::string(blocking ? "acquires " : "acquires, asynchronously, ") +
          world_.names[name].text + (o.mode == Mode::shared ? ", shared" : "") +
          (o.permits > 1 ? ", " + std::to_string(o.permits) + " permits" : "") +
          (o.wait == forever ? ", for ever" : ", waits " + words(wait)));
    const Nanos one_request = world_.request_timeout.count() * ms * world_.deployment_->time_outs();
    const Since since = begin();
    world_.waiting_.push_back({&user_, name, o.mode, o.permits, since.moment,
                               since.moment + std::min(wait, cancel_after)});
    const auto waits = std::prev(world_.waiting_.end());
    std::pair<error_code, Lease> out;
    if (blocking) {
        std::stop_source stop;
        if (cancel_after < never)
            world_.kernel.start(user_.process, "stopper",
                                [stop, cancel_after, &w = world_]() mutable {
                                    w.kernel.rest(cancel_after);
                                    stop.request_stop();
                                });
        auto got = lock.acquire(o, stop.get_token());
        if (got)
            out.second = std::move(*got);
        else
            out.first = got.error();
    } else {
        out = acquire_async(lock, o, cancel_after);
    }
    world_.waiting_.erase(waits);
    world_.hinder(name, out.first ? since.moment : 0);
    if (!out.first) world_.check_passed(out.second, name, since.moment);
    trace("acquires " + world_.names[name].text + ": " + words(out.first) +
          (out.first ? ""
                     : " " + std::string(out.second.owner_id().substr(0, 6)) + ", token " +
                           std::to_string(out.second.fencing_token().value)));
    if (o.wait != forever)
        took(since, std::max(wait, one_request) + last_try * world_.deployment_->time_outs(),
             "an acquisition");
    if (out.first == errc::cancelled)
        took(since, cancel_after + (blocking ? one_request : 0), "a cancelled acquisition");
    judge(out.first, o, name, since.moment, cancel_after < never);
    return out;
}

std::pair<error_code, Lease> Worker::acquire_async(Lock& lock, const AcquireOptions& o,
                                                   Nanos cancel_after) {
    Kernel& k = world_.kernel;
    const auto call = std::make_shared<Call>();
    const auto signal = std::make_shared<asio::cancellation_signal>();
    call->kernel = &k;
    call->waits = k.current();
    auto handler = [call](error_code ec, Lease lease) {
        call->error = ec;
        call->lease = std::move(lease);
        call->ended();
    };
    if (world_.with_loop_) {
        auto& loop = *user_.loop;
        asio::post(loop, [&lock, o, signal, &loop, handler] {
            lock.async_acquire(
                o, asio::bind_executor(loop.get_executor(),
                                       asio::bind_cancellation_slot(signal->slot(), handler)));
        });
    } else {
        lock.async_acquire(o, handler);
    }
    const Nanos cancel_at = cancel_after < never ? k.now() + cancel_after : never;
    bool emitted = !world_.with_loop_;
    while (call->ends == 0) {
        if (k.now() >= cancel_at && !emitted) {
            emitted = true;
            asio::post(*user_.loop, [signal] { signal->emit(asio::cancellation_type::terminal); });
            continue;  // it may have ended meanwhile
        }
        k.block(emitted ? never : cancel_at);
    }
    call->waits = nullptr;
    if (call->ends > 1) world_.fail("an acquisition ended twice");
    return {call->error, std::move(call->lease)};
}

void Worker::hold(Lease lease, Belief& belief) {
    Kernel& k = world_.kernel;
    const std::size_t name = belief.name;
    const Name& n = world_.names[name];
    belief.lease = &lease;
    ++world_.grants_;
    const std::uint64_t token = lease.fencing_token().value;
    const bool exclusive = lease.mode() == Mode::exclusive && n.options.kind != Kind::semaphore;
    if (world_.deployment_->fences() && n.options.kind != Kind::semaphore) {
        auto& highest = exclusive ? world_.highest_[name] : world_.highest_exclusive_[name];
        if (token <= highest && lease.valid() && !world_.history_->may_be_broken(belief, true))
            world_.fail(user_.process.name + ": the token goes back: " + std::to_string(token));
        world_.highest_[name] = std::max(world_.highest_[name], token);
        if (exclusive) world_.highest_exclusive_[name] = token;
    }
    while (random().chance(600))
        belief.listener->ask(lease);
    std::optional<Lease> other;  // a handle of the same grant
    if (random().chance(150)) other = share(lease);
    const Nanos until =
        k.now() + (random().chance(500) ? random().between(0, 60 * ms)
                                        : random().between(0, 2 * world_.ttl.count() * ms));
    while (k.now() < until && lease.valid() && !world_.stopping_) {
        k.rest(std::min(until - k.now(), random().between(10 * ms, 500 * ms)));
        if (random().chance(50)) belief.listener->cancel();
        if (random().chance(150)) renew(lease, belief);
    }
    const bool bounded = n.options.max_hold < forever;
    if (world_.calm && n.options.renew && !lease.valid() && !bounded &&
        !world_.history_->may_be_broken(belief, false))
        world_.fail(user_.process.name + ": a lease was lost: " + lease.lost_reason().message());
    if (random().chance(200)) belief.listener->ask(lease);
    // Its work stops late; until then the name is closed.
    const auto delay = n.options.lock_delay;
    if (!lease.valid() && delay > milliseconds(0) && random().chance(700))
        k.rest(random().between(0, 2 * delay.count() * ms));
    other.reset();
    release(std::move(lease), belief);
}

std::optional<Lease> Worker::share(const Lease& lease) {
    auto made = lease.share();
    if (made) return std::move(*made);
    if (lease.valid()) world_.fail("a handle was refused: " + made.error().message());
    return std::nullopt;
}

/// By itself, or as a downgrade.
void Worker::renew(Lease& lease, const Belief& belief) {
    const Name& n = world_.names[belief.name];
    if (lease.lost_reason() && lease.valid())
        world_.fail("a valid lease is lost: " + lease.lost_reason().message());
    if (!lease.valid()) return;
    const Since since = begin();
    Nanos bound = world_.request_timeout.count() * ms;
    const bool exclusive = lease.mode() == Mode::exclusive;
    result<void> done;
    if (exclusive && n.options.kind == Kind::shared_mutex && random().chance(500)) {
        bound *= 2;  // one renewal may be under way
        world_.succession_->downgraded(belief.owner, false);
        world_.hinder(belief.name);
        done = lease.downgrade();
        if (done) world_.succession_->downgraded(belief.owner, true);
        trace("downgrades " + n.text + ": " + (done ? "done" : done.error().message()));
    } else {
        done = lease.renew();
        trace("renews " + n.text + ": " + (done ? "done" : done.error().message()));
        if (!done && world_.calm && lease.valid())
            world_.fail("a renewal failed: " + done.error().message());
    }
    took(since, bound, "a renewal");
}

void Worker::release(Lease lease, Belief& belief) {
    Kernel& k = world_.kernel;
    belief.lease = &lease;
    const bool broken = world_.history_->may_be_broken(belief, false);
    // The server keeps what is broken, or was held for too long, until its end.
    const LockOptions& o = world_.names[belief.name].options;
    const bool kept = broken || o.max_hold < forever;
    const bool valid = lease.valid();
    const bool dropped = random().chance(200);
    const auto outcome = !dropped && random().chance(100) ? Outcome::abandoned : Outcome::done;
    world_.succession_->let_go(belief, outcome, !valid);
    if (!valid) {
        const Nanos ttl = world_.ttl.count() * ms, delay = o.lock_delay.count() * ms;
        const Nanos shown = lease.valid_until().time_since_epoch().count();
        const Nanos end = user_.process.when(shown) + world_.deployment_->lasts(ttl + delay) - ttl;
        Nanos& lapse = world_.lapses_[belief.name];
        lapse = std::max(lapse, end + (ttl + delay) / 50 + 5 * ms);
    }
    world_.history_->let_go(belief);
    std::erase(world_.beliefs_, &belief);
    const std::string text = world_.names[belief.name].text;
    Listener& listener = *belief.listener;
    if (dropped) {
        trace("drops " + text);
        lease = Lease();
        world_.hinder(belief.name);
        listener.left(std::nullopt, belief);
        if (!kept) world_.owed_.push_back({belief.owner, belief.name, &user_, k.now()});
        return;
    }
    trace("releases " + text);
    const Since since = begin();
    ReleaseResult answer{};
    if (random().chance(500)) {
        answer = lease.release(outcome);
    } else {
        const auto call = std::make_shared<Call>();
        call->kernel = &k;
        call->waits = k.current();
        lease.async_release(outcome, [call](error_code, ReleaseResult r) {
            call->released = r;
            call->ended();
        });
        while (call->ends == 0)
            k.block(never);
        call->waits = nullptr;
        if (call->ends > 1) world_.fail("a release ended twice");
        answer = call->released;
    }
    trace("releases " + text + ": " + std::string(to_string(answer)));
    world_.hinder(belief.name);
    const error_code lost = lease.lost_reason();
    listener.left(lost, belief);
    world_.succession_->answered(belief.owner, answer, static_cast<bool>(lost));
    if (lost && answer == ReleaseResult::released)
        world_.fail("a lost lease was released: " + lost.message());
    took(since, world_.request_timeout.count() * ms, "a release");
    if (answer == ReleaseResult::unreachable && !kept)
        world_.owed_.push_back({belief.owner, belief.name, &user_, k.now()});
    if (world_.calm && valid && !broken && answer != ReleaseResult::released)
        world_.fail("a release was answered: " + std::string(to_string(answer)));
}

}  // namespace holdfast::sim
