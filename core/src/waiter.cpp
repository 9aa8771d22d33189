#include "waiter.hpp"

#include <bit>

#include "grant.hpp"
#include "holdfast/spi/drift.hpp"

namespace holdfast {

Waiter::Waiter(std::shared_ptr<Engine> engine, std::weak_ptr<Handle> handle,
               std::shared_ptr<const LockInfo> info, std::string owner, milliseconds wait,
               boot_clock::time_point started, Caller caller)
    : engine_(std::move(engine)),
      handle_(std::move(handle)),
      info_(std::move(info)),
      owner_(std::move(owner)),
      caller_(std::move(caller)),
      wait_zero_(wait <= milliseconds::zero()),
      started_(started),
      deadline_(wait_zero_ ? boot_clock::time_point::max() : after(started, wait)),
      contact_until_(started + info_->request_timeout),
      poll_(engine_->timing.backoff_first, engine_->timing.backoff_last, false),
      retry_(engine_->timing.backoff_first, engine_->timing.backoff_last, true) {
    attempt_.name = info_->name;
    attempt_.owner = owner_;
    attempt_.ttl = info_->ttl;
    attempt_.queue = !wait_zero_;
    Counters::add(engine_->counters.waiting);
}

Waiter::~Waiter() {
    if (!told_) Counters::drop(engine_->counters.waiting);
}

void Waiter::adopt(spi::Attempt& lane) {
    attempt_.place = std::move(lane.place);
    attempt_.detail = lane.detail;
    go_on_from(lane);
}

void Waiter::go_on_from(const spi::Attempt& asked) {
    attempt_.again = true;
    doubtful_ = std::holds_alternative<spi::Attempt::Doubt>(asked.outcome);
    answered_ever_ = has_answered(asked);
    last_request_ = asked.deadline;
}

bool Waiter::has_answered(const spi::Attempt& asked) const noexcept {
    if (std::holds_alternative<spi::Attempt::Busy>(asked.outcome)) return true;
    const auto* failed = std::get_if<spi::Attempt::Failed>(&asked.outcome);
    return failed != nullptr && failed->answered && !wait_zero_;
}

spi::Attempt& Waiter::prepare_ride(boot_clock::time_point now) {
    Counters::add(engine_->counters.attempts);
    attempt_.queue = false;
    attempt_.sent = now;
    attempt_.deadline = std::min(contact_until_, deadline_);
    return attempt_;
}

bool Waiter::ridden() {
    if (const auto* g = std::get_if<spi::Attempt::Granted>(&attempt_.outcome)) {
        if (!deliver(*g)) return true;
        attempt_.outcome = spi::Attempt::Doubt{make_error_code(errc::unavailable)};
    }
    if (wait_zero_ && std::holds_alternative<spi::Attempt::Busy>(attempt_.outcome)) {
        finish(make_error_code(errc::contended));
        return true;
    }
    attempt_.queue = !wait_zero_;
    go_on_from(attempt_);
    return false;
}

void Waiter::start() {
    if (told_) return;
    engine_->enrol(owner_, self());
    if (engine_->closed()) return cancel(make_error_code(errc::closed));
    look();
}

void Waiter::look() {
    phase_ = Phase::attempting;
    under_way_ = true;
    rearm();
    engine_->attempt(self());
}

void Waiter::rearm() {
    auto due = boot_clock::time_point::max();
    if (!told_) due = deadline_;
    if (phase_ == Phase::parked || phase_ == Phase::resting) due = std::min(due, look_);
    if (due == boot_clock::time_point::max())
        engine_->schedule().cancel(*this);
    else
        engine_->schedule().set(*this, due);
}

void Waiter::look_at(boot_clock::time_point when) {
    look_ = when;
    rearm();
}

void Waiter::fire(boot_clock::time_point now) {
    if (!told_ && now >= deadline_) {
        // Timed out means that somebody else has it, and only the server can know that.
        if (!last_error_ && !answered_ever_)
            last_error_ =
                make_error_code(doubtful_ || under_way_ ? errc::in_doubt : errc::unavailable);
        finish(last_error_ ? last_error_ : make_error_code(errc::timed_out));
        return leave();
    }
    if (now >= look_ && phase_ == Phase::parked) return look();
    if (now >= look_ && phase_ == Phase::resting) return leave();
    rearm();
}

void Waiter::wake() {
    if (told_) return;
    if (phase_ == Phase::parked)
        look();
    else
        woken_ = true;  // the look under way may have been answered before the news
}

void Waiter::cancel(error_code why) {
    if (told_) return;
    finish(why);
    leave();
}

spi::Attempt& Waiter::prepare_attempt(boot_clock::time_point now) {
    Counters::add(engine_->counters.attempts);
    woken_ = false;
    attempt_.sent = now;
    attempt_.deadline = now + info_->request_timeout;
    // Until the server has answered once, the whole call is bounded by one request time-out.
    if (!answered_ever_)
        attempt_.deadline =
            std::max(std::min(attempt_.deadline, contact_until_), now + milliseconds(50));
    last_request_ = std::max(last_request_, attempt_.deadline);
    attempt_.detail.clear();
    return attempt_;
}

void Waiter::answered() {
    under_way_ = false;
    attempt_.again = true;
    if (const auto* g = std::get_if<spi::Attempt::Granted>(&attempt_.outcome)) return granted(*g);
    if (const auto* d = std::get_if<spi::Attempt::Doubt>(&attempt_.outcome)) {
        doubtful_ = true;
        Counters::add(engine_->counters.in_doubt);
        if (engine_->events->wanted()) {
            Event e;
            e.kind = Event::Kind::in_doubt;
            e.name = info_->name, e.owner = owner_, e.reason = d->why;
            engine_->events->tell(std::move(e));
        }
        return retry(d->why, true);
    }
    if (const auto* f = std::get_if<spi::Attempt::Failed>(&attempt_.outcome)) {
        answered_ever_ = answered_ever_ || has_answered(attempt_);
        return retry(f->why, false);
    }

    const auto& busy = std::get<spi::Attempt::Busy>(attempt_.outcome);
    answered_ever_ = true;
    queued_ = attempt_.queue;
    doubtful_ = false;
    last_error_ = {};
    retry_.reset();
    info_->busy.store(true, std::memory_order_relaxed);
    if (told_) return leave();
    if (wait_zero_) {
        finish(make_error_code(errc::contended));
        return leave();
    }
    if (engine_->events->wanted()) {
        Event e;
        e.kind = Event::Kind::waiting;
        e.name = info_->name, e.owner = owner_;
        engine_->events->tell(std::move(e));
    }
    phase_ = Phase::parked;
    if (woken_) return wake();
    const auto now = boot_clock::now();
    milliseconds pause = std::max(busy.look_again, milliseconds(1));
    if (busy.polling) pause = std::min(pause, poll_.next());
    auto when = now + pause;
    // Looks of many waiters fall together, so that they can share a request.
    if (!busy.polling && pause.count() >= 40) {
        const auto slot = static_cast<std::uint64_t>(pause.count()) / 3;
        const std::chrono::nanoseconds grid = milliseconds(std::bit_floor(slot));
        when = boot_clock::time_point(when.time_since_epoch() / grid * grid);
    }
    look_at(when);
}

void Waiter::granted(const spi::Attempt::Granted& g) {
    answered_ever_ = true;
    doubtful_ = true;  // from here on something of ours is at the server
    last_error_ = {};
    if (told_) return leave();
    const error_code ec = deliver(g);
    if (ec == errc::closed) return cancel(ec);
    if (ec) return retry(ec, true);
}

error_code Waiter::deliver(const spi::Attempt::Granted& g) {
    const auto base = g.base == boot_clock::time_point{} ? attempt_.sent : g.base;
    const auto valid_until = base + g.ttl - spi::drift(g.ttl);
    // It goes on into the grant: kept here, it could become the last one after the caller has let
    // go of everything, and the client would be closed by this thread and not by his.
    auto handle = handle_.lock();
    if (!handle) return make_error_code(errc::closed);
    if (valid_until <= boot_clock::now())  // answered too late to be believed: ask again
        return make_error_code(errc::unavailable);
    Grant::Facts facts{g.token, g.previous, g.ttl, base, valid_until, started_};
    if (phase_ != Phase::idle) end();  // the id goes on into the grant
    auto grant = Grant::make(engine_, std::move(handle), info_, std::move(owner_),
                             std::move(attempt_.place), facts);
    if (!queued_) info_->busy.store(false, std::memory_order_relaxed);  // nobody was in the way
    doubtful_ = queued_ = false;
    phase_ = Phase::done;
    finish({}, Lease(std::move(grant)));
    return {};
}

void Waiter::retry(error_code why, bool in_doubt) {
    last_error_ = in_doubt && why != errc::unavailable ? why
                  : in_doubt                           ? make_error_code(errc::in_doubt)
                                                       : why;
    if (told_) return leave();
    const auto now = boot_clock::now();
    const bool again = in_doubt || why == errc::unavailable || why == errc::no_quorum;
    const auto until = answered_ever_ ? deadline_ : std::min(deadline_, contact_until_);
    const auto pause = retry_.next();
    if (!again || now + pause >= until) {
        finish(last_error_);
        return leave();
    }
    phase_ = Phase::parked;
    look_at(now + pause);
}

void Waiter::finish(error_code ec, Lease lease) {
    if (told_) return;
    told_ = true;
    auto& c = engine_->counters;
    Counters::drop(c.waiting);
    if (ec == errc::contended || ec == errc::timed_out)
        Counters::add(c.contended);
    else if (ec == errc::cancelled)
        Counters::add(c.cancelled);
    else if (ec)
        Counters::add(c.failed);
    if (ec && caller_.diagnostics != nullptr)
        explain(*caller_.diagnostics, engine_->chosen, ec, attempt_.detail);
    caller_.diagnostics = nullptr;
    if (caller_.latch)
        caller_.latch->set({ec, std::move(lease)});
    else
        engine_->complete(std::move(caller_.callback), ec, std::move(lease));
}

void Waiter::leave() {
    if (!std::exchange(ending_, true)) engine_->begin_end();
    rearm();
    if (under_way_) return;  // its answer comes back here
    if (!queued_ && !doubtful_) return end();
    phase_ = Phase::withdrawing;
    under_way_ = true;
    engine_->withdraw(self());
}

spi::Attempt& Waiter::prepare_withdrawal(boot_clock::time_point now) {
    attempt_.sent = now;
    attempt_.deadline = now + info_->request_timeout;
    attempt_.detail.clear();
    return attempt_;
}

void Waiter::withdrawn(error_code ec) {
    under_way_ = false;
    const auto now = boot_clock::now();
    if (!ec || now >= last_request_ + info_->ttl) return end();
    phase_ = Phase::resting;
    look_at(now + retry_.next());
}

void Waiter::end() {
    phase_ = Phase::done;
    engine_->dismiss(owner_);
    engine_->schedule().cancel(*this);
    if (ending_) engine_->end_end();
    ending_ = false;
}

}  // namespace holdfast
