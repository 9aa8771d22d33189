#include "lease_impl.hpp"

#include <algorithm>
#include <iterator>

#include "config/text.hpp"
#include "explain.hpp"
#include "holdfast/spi/drift.hpp"

namespace holdfast {
std::optional<LeaseImpl::Facts> LeaseImpl::facts_of(const spi::Attempt& a,
                                                    boot_clock::time_point started) {
    const auto& g = std::get<spi::Attempt::Granted>(a.outcome);
    // Counted from before the request was sent, whatever the answer took.
    const auto base = g.base == boot_clock::time_point{} ? a.sent : g.base;
    const auto until = spi::valid_until(base, g.ttl);
    const auto now = boot_clock::now();
    if (until <= now) return std::nullopt;
    return Facts{g.token, g.previous, a.units, g.ttl, base, until, started, now};
}

std::shared_ptr<LeaseImpl> LeaseImpl::make(std::shared_ptr<Engine> engine,
                                           std::shared_ptr<Client::Impl> client,
                                           std::shared_ptr<const LockInfo> info, std::string owner,
                                           std::shared_ptr<void> place, const Facts& facts) {
    info->granted(facts.ttl);
    auto grant = std::make_shared<LeaseImpl>(std::move(engine), std::move(client), std::move(info),
                                             std::move(owner), std::move(place), facts);
    grant->engine_->counters.granted(facts.granted - facts.started);
    grant->tell(Event::Kind::acquired, {}, facts.started);
    grant->engine_->leases().add(*grant);
    grant->schedule_next();
    return grant;
}

LeaseImpl::LeaseImpl(std::shared_ptr<Engine> engine, std::shared_ptr<Client::Impl> client,
                     std::shared_ptr<const LockInfo> info, std::string owner,
                     std::shared_ptr<void> place, const Facts& facts)
    : engine_(std::move(engine)),
      client_(std::move(client)),
      info_(std::move(info)),
      owner_(std::move(owner)),
      place_(std::move(place)),
      token_(facts.token),
      units_(facts.units),
      since_(facts.granted),
      previous_(facts.previous),
      mode_(facts.units.mode),
      valid_until_(facts.valid_until.time_since_epoch().count()),
      granted_(facts.ttl.count()),
      asked_until_(spi::valid_until(facts.base, info_->ttl)),
      ends_at_(after(facts.granted, info_->max_hold)),
      retry_(std::max(engine_->timing.backoff_first, facts.ttl / 100),
             std::max(engine_->timing.backoff_first, facts.ttl / 10), true) {
    plan_renewal(facts.base, facts.ttl);
    kept_from(facts.granted);
}

void LeaseImpl::plan_renewal(boot_clock::time_point base, milliseconds length) noexcept {
    // A fixed lease as well, where the server set less than was asked for.
    const bool renew = info_->renew || valid_until() < asked_until_;
    next_renewal_ = renew ? base + length / 3 : boot_clock::time_point::max();
}

LeaseImpl::~LeaseImpl() {
    // A release on another thread may have come between the engine's look at the state and its
    // scheduling of the next moment, which then finds nothing left to do.
    engine_->schedule().cancel(*this);
    if (!forked()) engine_->leases().remove(*this);  // its mutex is the parent's
}

bool LeaseImpl::lives() const noexcept {
    const LeaseState s = state_.load(std::memory_order_acquire);
    return s == LeaseState::held || s == LeaseState::at_risk;
}

LeaseState LeaseImpl::state() const noexcept {
    if (forked()) return LeaseState::lost;
    // The clock may be ahead of the timer, after a pause for instance.
    if (over()) {
        const std::lock_guard hold(mutex_);
        if (over()) return LeaseState::lost;
    }
    return state_.load(std::memory_order_acquire);
}

bool LeaseImpl::valid() const noexcept {
    const LeaseState s = state();
    return s == LeaseState::held || s == LeaseState::at_risk;
}

boot_clock::time_point LeaseImpl::valid_until() const noexcept {
    return boot_clock::time_point(
        boot_clock::duration(valid_until_.load(std::memory_order_acquire)));
}

std::stop_token LeaseImpl::release_requested() {
    if (forked()) return {};
    const std::lock_guard hold(mutex_);
    if (!asked_stop_.stop_possible()) {
        asked_stop_ = std::stop_source();
        if (asked_) asked_stop_.request_stop();
    }
    return asked_stop_.get_token();
}

void LeaseImpl::asked() {
    std::stop_source stop{std::nostopstate};
    {
        const std::lock_guard hold(mutex_);
        if (!lives() || std::exchange(asked_, true)) return;
        stop = asked_stop_;
    }
    if (stop.stop_possible())
        engine_->pool().post([s = std::move(stop)]() mutable { s.request_stop(); });
}

error_code LeaseImpl::lost_reason() const noexcept {
    if (forked()) return make_error_code(errc::forked);
    const std::lock_guard hold(mutex_);
    return over() ? end_reason() : reason_;
}

RequestError LeaseImpl::last_error() const {
    if (forked()) return {make_error_code(errc::forked), {}};
    const std::lock_guard hold(mutex_);
    return last_error_;
}

RequestError LeaseImpl::error_of(error_code ec, std::string words) {
    return {ec ? ec : make_error_code(errc::unavailable), config::printable(std::move(words))};
}

void LeaseImpl::keep_error(RequestError e) {
    const std::lock_guard hold(mutex_);
    last_error_ = std::move(e);
}

spi::Held LeaseImpl::held(boot_clock::time_point now, boot_clock::time_point deadline) const {
    spi::Held h;
    h.name = info_->name;
    h.owner = owner_;
    h.token = token_;
    h.units = units_;
    if (mode() != units_.mode) h.units = {1, spi::Units::all, Mode::shared};
    h.lock_delay = info_->lock_delay;
    h.min_hold = info_->min_hold;
    h.ttl = info_->ttl;
    h.place = place_;
    h.sent = now;
    h.deadline = deadline;
    return h;
}

void LeaseImpl::tell(Event::Kind kind, RequestError why,
                     std::optional<boot_clock::time_point> since) {
    if (!engine_->events->wanted()) return;
    const auto now = boot_clock::now();
    Event e;
    e.kind = kind;
    e.name = info_->name, e.owner = owner_, e.token = token_;
    e.reason = why.code, e.text = std::move(why.text);
    if (since) e.took = std::chrono::floor<milliseconds>(now - *since);
    e.left = std::max(milliseconds(0), std::chrono::floor<milliseconds>(valid_until() - now));
    engine_->events->tell(std::move(e));
}

void LeaseImpl::count_end(boot_clock::time_point now) noexcept {
    engine_->counters.ended(std::min(now, valid_until()) - since_);
}

// --- renewal and loss
// -------------------------------------------------------------------------------

void LeaseImpl::schedule_next() {
    auto due = end();
    if (!renewing_) due = std::min(due, next_renewal_);
    engine_->schedule().set(*this, due);
}

void LeaseImpl::fire(boot_clock::time_point now) {
    if (releasing_) {
        if (now >= answer_by()) {
            // One that waits in this client does so while the server answers others.
            if (ending_ && queued_here_)
                ending_->answer_by = now + info_->request_timeout;
            else
                answer_release(ReleaseResult::unreachable);
        }
        if (!release_sent_ && now >= next_release_) {
            release_sent_ = true;
            engine_->release(self());
        }
        if (releasing_)
            engine_->schedule().set(
                *this, release_sent_ ? answer_by() : std::min(answer_by(), next_release_));
        return;
    }
    if (!lives()) return;
    if (now >= end()) return expire();
    if (!renewing_ && now >= next_renewal_) {
        renewing_ = true;
        engine_->renew(self());
    }
    schedule_next();
}

void LeaseImpl::renew_now() {
    if (releasing_ || !lives()) return;
    // The one under way may be too old to be answered in time.
    if (renewing_) {
        again_at_once_ = true;
        return;
    }
    renewing_ = true;
    engine_->renew(self());
}

void LeaseImpl::moved() {
    // The one under way may be answered by the server before.
    moved_meanwhile_ = renewing_;
    if (!releasing_) return renew_now();
    retry_.reset();
    next_release_ = {};
    fire(boot_clock::now());
}

spi::Held* LeaseImpl::prepare_renewal(boot_clock::time_point now) {
    if (!lives()) return nullptr;
    renewal_ = held(now, std::min(now + info_->request_timeout,
                                  std::max(valid_until(), now + milliseconds(1))));
    kept_from(renewal_.deadline);
    return &renewal_;
}

void LeaseImpl::extend() {
    const auto base = renewal_.renewed_base.value_or(renewal_.sent);
    const auto length = renewal_.renewed_ttl.value_or(renewal_.ttl);
    const auto until = spi::valid_until(base, length);
    // Never back by an older base; but what the server set for less ends sooner.
    const bool less = length < milliseconds(granted_.exchange(length.count()));
    if (until > valid_until() || less) valid_until_.store(until.time_since_epoch().count());
    info_->granted(length);
    kept_from(renewal_.deadline);
    state_.store(LeaseState::held, std::memory_order_release);
    plan_renewal(base, length);
    retry_.reset();
    last_error_ = {};
}

void LeaseImpl::renewed() {
    using Renewal = spi::Held::Renewal;
    renewing_ = false;
    const bool at_once = std::exchange(again_at_once_, false);
    const bool moved = std::exchange(moved_meanwhile_, false);
    auto waiting = std::exchange(renewals_, {});
    const auto answer = [&](error_code ec) {
        for (Renewing& told : waiting)
            std::move(told)(ec);
    };
    {
        std::unique_lock hold(mutex_);
        const LeaseState s = state_.load(std::memory_order_acquire);
        if (s == LeaseState::lost || s == LeaseState::released) {
            const error_code ec = s == LeaseState::lost ? reason_ : make_error_code(errc::not_held);
            hold.unlock();
            return answer(ec);
        }
        // Its holder may have seen the end, and has stopped.
        if (renewal_.renewal == Renewal::renewed && over()) {
            hold.unlock();
            expire();
            return answer(lost_reason());
        }
        if (renewal_.renewal == Renewal::renewed) {
            extend();
            if (moved) next_renewal_ = boot_clock::now();
            hold.unlock();
            engine_->counters.renewal_time.add(boot_clock::now() - renewal_.sent);
            if (s == LeaseState::at_risk) tell(Event::Kind::recovered);
        } else if (renewal_.renewal == Renewal::unknown) {
            state_.store(LeaseState::at_risk, std::memory_order_release);
            next_renewal_ = boot_clock::now() + (at_once ? milliseconds(0) : retry_.next());
            last_error_ = error_of(renewal_.renewal_error, std::move(renewal_.detail));
            RequestError why = last_error_;
            hold.unlock();
            Counters::add(engine_->counters.renewals_failed);
            tell(Event::Kind::at_risk, std::move(why));
        }
    }
    if (renewal_.renewal == Renewal::lost) {
        reported_lost(renewal_.renewal_error, std::move(renewal_.detail));
        return answer(lost_reason());
    }
    if (renewal_.asked) asked();
    if (renewal_.renewal == Renewal::renewed && renewal_.units.mode != mode()) {
        // A downgrade was asked for meanwhile: its callers wait for a renewal that says so.
        renewals_.insert(renewals_.end(), std::make_move_iterator(waiting.begin()),
                         std::make_move_iterator(waiting.end()));
        renewing_ = true;
        engine_->renew(self());
        return schedule_next();
    }
    schedule_next();
    answer(renewal_.renewal == Renewal::renewed ? error_code()
                                                : make_error_code(errc::unavailable));
}

// --- downgrade: a renewal that asks for less
// ----------------------------------------------------------------------

std::optional<error_code> LeaseImpl::begin_downgrade() {
    if (forked()) return make_error_code(errc::forked);
    if (units_.permits() || !engine_->backend().capabilities().has(Capability::downgrade))
        return make_error_code(errc::not_supported);
    if (mode_.exchange(Mode::shared) == Mode::shared && valid()) return error_code();
    return std::nullopt;
}

void LeaseImpl::complete(asio::any_completion_handler<Lease::RenewSignature> h, error_code ec) {
    if (forked()) return spi::LeaseBody::complete(std::move(h), ec);
    engine_->complete(std::move(h), ec);
}

// --- renewal on demand
// ------------------------------------------------------------------------------

void LeaseImpl::renew_in_background(Renewing told) {
    const LeaseState s = state();
    if (s == LeaseState::lost) return std::move(told)(lost_reason());
    if (s == LeaseState::released) return std::move(told)(make_error_code(errc::not_held));
    renewals_.push_back(std::move(told));
    renew_now();
}

result<void> LeaseImpl::renew() {
    if (forked()) return make_error_code(errc::forked);
    if (engine_->closed()) return make_error_code(errc::closed);
    if (engine_->on_engine_thread()) return make_error_code(errc::would_deadlock);
    auto answer = std::make_shared<OneShot<error_code>>();
    engine_->post([self = self(), answer] {
        self->renew_in_background([answer](error_code ec) { answer->set(ec); });
    });
    // A downgrade may wait for a renewal that is under way.
    const auto cap = boot_clock::now() + 2 * info_->request_timeout + std::chrono::seconds(1);
    const auto ec = answer->take_until(cap).value_or(make_error_code(errc::unavailable));
    if (ec) return ec;
    return {};
}

/// Completes the handler once: with `closed` where an engine that has ended has dropped the call.
class LeaseImpl::RenewOnce {
public:
    RenewOnce(std::shared_ptr<Engine> e, asio::any_completion_handler<Lease::RenewSignature> h)
        : engine_(std::move(e)),
          callback_(std::make_unique<Callback<Lease::RenewSignature>>(
              std::move(h), engine_->default_executor())) {}
    RenewOnce(RenewOnce&&) = default;
    ~RenewOnce() {
        if (callback_ && !engine_->forked()) (*this)(make_error_code(errc::closed));
    }
    void operator()(error_code ec) {
        const auto callback = std::move(callback_);
        engine_->complete(*callback, ec);
    }

private:
    std::shared_ptr<Engine> engine_;
    std::unique_ptr<Callback<Lease::RenewSignature>> callback_;  ///< null: completed
};

void LeaseImpl::async_renew(asio::any_completion_handler<Lease::RenewSignature> handler) {
    if (forked()) return;
    if (engine_->closed()) return complete(std::move(handler), make_error_code(errc::closed));
    engine_->post(
        [self = self(), told = Renewing(RenewOnce(engine_, std::move(handler)))]() mutable {
            self->renew_in_background(std::move(told));
        });
}

}  // namespace holdfast
