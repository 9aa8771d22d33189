#include "acquisition.hpp"

#include <bit>
#include <utility>

#include "holdfast/spi/drift.hpp"
#include "lease_impl.hpp"

namespace holdfast {

Acquisition::Acquisition(std::shared_ptr<Engine> engine, std::weak_ptr<Client::Impl> client,
                         std::shared_ptr<const LockInfo> info, std::string owner,
                         const spi::Units& units, milliseconds wait, boot_clock::time_point started,
                         Caller caller)
    : engine_(std::move(engine)),
      client_(std::move(client)),
      info_(std::move(info)),
      owner_(std::move(owner)),
      latch_(std::move(caller.latch)),
      diagnostics_(caller.diagnostics),
      wait_zero_(wait <= milliseconds::zero()),
      started_(started),
      deadline_(wait_zero_ ? boot_clock::time_point::max() : after(started, wait)),
      poll_(engine_->timing.backoff_first, engine_->timing.backoff_last, false),
      retry_(engine_->timing.backoff_first, engine_->timing.backoff_last, true),
      callback_(std::move(caller.handler), engine_->default_executor(), this) {
    info_->describe(attempt_);
    attempt_.owner = owner_;
    attempt_.units = units;
    attempt_.queue = !wait_zero_;
    Counters::add(engine_->counters.waiting);
}

Acquisition::~Acquisition() {
    engine_->schedule().cancel(*this);
    if (!told_) Counters::drop(engine_->counters.waiting);
}

void Acquisition::adopt(spi::Attempt& lane) {
    attempt_.place = std::move(lane.place);
    attempt_.detail = lane.detail;
    attempt_.repeated = true;
    doubtful_ = std::holds_alternative<spi::Attempt::NoAnswer>(lane.outcome);
    sent_ever_ = true;
    first_sent_ = lane.sent;
    answered_ever_ = has_answered(lane) && !wait_zero_;
    note_take_over(lane);
    last_request_ = lane.deadline;
}

std::shared_ptr<void> Acquisition::orphaned() {
    const auto alive = std::static_pointer_cast<Acquisition>(weak_from_this().lock());
    if (alive) engine_->post([alive] { alive->cancel(make_error_code(errc::cancelled)); });
    return alive;
}

bool Acquisition::has_answered(const spi::Attempt& a) noexcept {
    if (const auto* failed = std::get_if<spi::Attempt::Failed>(&a.outcome))
        return failed->server_alive;
    return std::holds_alternative<spi::Attempt::Granted>(a.outcome) ||
           std::holds_alternative<spi::Attempt::Busy>(a.outcome);
}

void Acquisition::note_take_over(const spi::Attempt& a) noexcept {
    const auto* const lost = std::get_if<spi::Attempt::NoAnswer>(&a.outcome);
    taken_over_ = taken_over_ || (lost != nullptr && lost->server_alive && !wait_zero_);
}

/// From here to end() the engine keeps this alive.
void Acquisition::join_engine() {
    if (!std::exchange(joined_, true)) engine_->add(owner_, self());
}

void Acquisition::start() {
    if (told_) return;
    join_engine();
    if (engine_->closed()) return cancel(make_error_code(errc::closed));
    look();
}

void Acquisition::look() {
    phase_ = Phase::attempting;
    under_way_ = true;
    rearm();
    engine_->attempt(self());
}

void Acquisition::rearm() {
    auto due = boot_clock::time_point::max();
    if (!told_) due = deadline_;
    if (phase_ == Phase::parked || phase_ == Phase::resting) due = std::min(due, look_);
    if (due == boot_clock::time_point::max())
        engine_->schedule().cancel(*this);
    else
        engine_->schedule().set(*this, due);
}

void Acquisition::look_at(boot_clock::time_point when) {
    look_ = when;
    rearm();
}

void Acquisition::fire(boot_clock::time_point now) {
    if (!told_ && now >= deadline_) {
        // Timed out means that somebody else has it, and only the server can know that.
        if (!last_error_ && !answered_ever_)
            last_error_ = make_error_code(
                doubtful_ || (under_way_ && !queued_here_) ? errc::in_doubt : errc::unavailable);
        finish(last_error_ ? last_error_ : make_error_code(errc::timed_out));
        return leave();
    }
    if (now >= look_ && phase_ == Phase::parked) return look();
    if (now >= look_ && phase_ == Phase::resting) return leave();
    rearm();
}

void Acquisition::wake() {
    if (told_) return;
    if (phase_ == Phase::parked)
        look();
    else
        woken_ = true;  // the look under way may have been answered before the news
}

void Acquisition::moved() {
    retry_.reset();
    if (phase_ == Phase::resting)
        leave();
    else
        wake();
}

void Acquisition::cancel(error_code why) {
    if (told_) return;
    finish(why);
    leave();
}

boot_clock::time_point Acquisition::contact_until() const noexcept {
    return (sent_ever_ ? first_sent_ : started_) + info_->request_timeout;
}

void Acquisition::unanswered(boot_clock::time_point now) {
    // What is left of its time would not be enough for a request of its own.
    if (told_ || in_contact() || now + info_->request_timeout / 2 < contact_until()) return;
    finish(make_error_code(doubtful_ ? errc::in_doubt : errc::unavailable));
    leave();
}

bool Acquisition::to_be_sent() {
    queued_here_ = false;
    if (!told_ || phase_ == Phase::withdrawing) return true;
    under_way_ = false;
    leave();
    return false;
}

spi::Attempt* Acquisition::prepare_attempt(boot_clock::time_point now) {
    Counters::add(engine_->counters.attempts);
    woken_ = false;
    attempt_.sent = now;
    attempt_.deadline = now + info_->request_timeout;
    if (!std::exchange(sent_ever_, true)) first_sent_ = now;
    // Until the server has answered once, the whole call is bounded by one request time-out.
    if (!in_contact())
        attempt_.deadline =
            std::max(std::min(attempt_.deadline, contact_until()), now + milliseconds(50));
    last_request_ = std::max(last_request_, attempt_.deadline);
    attempt_.outcome = spi::Attempt::NoAnswer{make_error_code(errc::unavailable)};
    attempt_.detail.clear();
    return &attempt_;
}

void Acquisition::answered() {
    under_way_ = false;
    attempt_.repeated = true;
    answered_ever_ = answered_ever_ || (has_answered(attempt_) && !wait_zero_);
    note_take_over(attempt_);
    if (has_answered(attempt_) && silence_.ends()) tell(Event::Kind::reachable);
    if (std::holds_alternative<spi::Attempt::Granted>(attempt_.outcome)) return granted();
    if (const auto* d = std::get_if<spi::Attempt::NoAnswer>(&attempt_.outcome)) {
        doubtful_ = true;
        Counters::add(engine_->counters.in_doubt);
        tell(Event::Kind::in_doubt, d->why);
        return retry(d->why, true);
    }
    if (const auto* f = std::get_if<spi::Attempt::Failed>(&attempt_.outcome))
        return retry(f->why, false);

    const auto& busy = std::get<spi::Attempt::Busy>(attempt_.outcome);
    queued_ = attempt_.queue;
    // An earlier request that was not answered may still come there and be granted. An
    // attempt in line is withdrawn in any case when the wait ends.
    doubtful_ = doubtful_ && !queued_;
    last_error_ = {};
    refusal_.reset();
    retry_.reset();
    hurried_ = false;
    info_->busy.store(true, std::memory_order_relaxed);
    if (told_) return leave();
    if (wait_zero_) {
        finish(make_error_code(errc::contended));
        return leave();
    }
    tell(Event::Kind::waiting);
    phase_ = Phase::parked;
    if (woken_) return wake();
    const auto now = boot_clock::now();
    milliseconds pause = std::max(busy.look_within, milliseconds(1));
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

void Acquisition::tell(Event::Kind kind, error_code reason) {
    if (!engine_->events->wanted()) return;
    Event e;
    e.kind = kind;
    e.name = info_->name, e.owner = owner_, e.reason = reason;
    if (reason) e.text = attempt_.detail;
    engine_->events->tell(std::move(e));
}

void Acquisition::granted() {
    doubtful_ = true;  // from here on something of ours is at the server
    last_error_ = {};
    if (told_) return leave();
    // A hand-over may hold for less than the ttl until a renewal; a lease that is never renewed
    // asks for all of it before it begins. Once: there are servers that give no more.
    const auto& g = std::get<spi::Attempt::Granted>(attempt_.outcome);
    if (!info_->renew && g.ttl < info_->ttl && !std::exchange(asked_whole_, true)) return look();
    const error_code ec = deliver();
    if (ec == errc::closed) return cancel(ec);
    if (ec) return retry(ec, true);
}

error_code Acquisition::deliver() {
    const auto facts = LeaseImpl::facts_of(attempt_, started_);
    if (!facts) return make_error_code(errc::unavailable);
    // It goes on into the grant: kept here, it could become the last one after the caller has let
    // go of everything, and the client would be closed by this thread and not by the caller's.
    auto client = client_.lock();
    if (!client) return make_error_code(errc::closed);
    end();  // the id goes on into the grant
    auto grant = LeaseImpl::make(engine_, std::move(client), info_, std::move(owner_),
                                 std::move(attempt_.place), *facts);
    if (!queued_) info_->busy.store(false, std::memory_order_relaxed);  // nobody was in the way
    doubtful_ = queued_ = false;
    phase_ = Phase::done;
    finish({}, Lease(std::move(grant)));
    return {};
}

void Acquisition::retry(error_code why, bool in_doubt) {
    if (!why) why = make_error_code(errc::unavailable);  // without an error it would be a success
    const auto now = boot_clock::now();
    if (!in_doubt && now < attempt_.deadline) {
        refusal_ = std::make_unique<Refusal>(Refusal{why, attempt_.detail});
    } else if (!in_doubt && refusal_) {
        why = refusal_->why;
        attempt_.detail = refusal_->words;
    }
    last_error_ = in_doubt && why != errc::unavailable ? why
                  : in_doubt                           ? make_error_code(errc::in_doubt)
                                                       : why;
    if (told_) return leave();
    const bool again = in_doubt || why == errc::unavailable || why == errc::no_quorum;
    const auto until = in_contact() ? deadline_ : std::min(deadline_, contact_until());
    // What a wake-up during this attempt was about may be there now. Not twice in a row: there may
    // be a wake-up whenever the server is asked, and never an answer.
    const bool at_once = woken_ && !std::exchange(hurried_, true);
    const auto pause = at_once ? milliseconds::zero() : retry_.next();
    if (!again || now + pause >= until) {
        finish(last_error_);
        return leave();
    }
    if (!has_answered(attempt_) && silence_.lasts(attempt_.sent, now, info_->request_timeout))
        tell(Event::Kind::unreachable, why);
    phase_ = Phase::parked;
    look_at(now + pause);
}

void Acquisition::finish(error_code ec, Lease lease) {
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
    if (ec && diagnostics_ != nullptr)
        callback_.while_alive(
            [&] { explain(*diagnostics_, engine_->resolved, ec, attempt_.detail); });
    diagnostics_ = nullptr;
    if (latch_)
        latch_->set({ec, std::move(lease)});
    else
        engine_->complete(callback_, ec, std::move(lease));
}

void Acquisition::leave() {
    join_engine();  // a cancellation may come before start()
    if (!std::exchange(ending_, true)) engine_->cleanup_started();
    rearm();
    if (under_way_) return;  // its answer comes back here
    if (!queued_ && !doubtful_) return end();
    phase_ = Phase::withdrawing;
    under_way_ = true;
    engine_->withdraw(self());
}

spi::Attempt* Acquisition::prepare_withdrawal(boot_clock::time_point now) {
    attempt_.sent = now;
    attempt_.deadline = now + info_->request_timeout;
    attempt_.detail.clear();
    attempt_.withdrawal = make_error_code(errc::unavailable);
    return &attempt_;
}

void Acquisition::withdrawn() {
    under_way_ = false;
    const auto now = boot_clock::now();
    if (!attempt_.withdrawal || now >= last_request_ + info_->longest()) return end();
    phase_ = Phase::resting;
    look_at(now + retry_.next());
}

void Acquisition::end() {
    phase_ = Phase::done;
    if (std::exchange(joined_, false)) engine_->remove(owner_);
    engine_->schedule().cancel(*this);
    if (ending_) engine_->cleanup_done();
    ending_ = false;
}

}  // namespace holdfast
