// How a lease ends by its holder's will: on a lane, on a ride, or on the engine with retries.
#include <algorithm>

#include "grant.hpp"
#include "holdfast/spi/drift.hpp"
#include "ride.hpp"

namespace holdfast {

bool Grant::begin_release(Outcome outcome) noexcept {
    std::list<Losing> losing;
    {
        const std::lock_guard hold(mutex_);
        const LeaseState s = state_.load(std::memory_order_acquire);
        if (s == LeaseState::lost || s == LeaseState::released) return false;
        state_.store(LeaseState::released, std::memory_order_release);
        outcome_ = outcome;
        losing.swap(losing_);
    }
    engine_->schedule().cancel(*this);
    Counters::drop(engine_->counters.held);
    for (Losing& l : losing)
        engine_->complete_later(std::move(l.callback), make_error_code(errc::not_held));
    return true;
}

ReleaseResult Grant::release(Outcome outcome) noexcept {
    if (forked()) return ReleaseResult::unreachable;
    if (!begin_release(outcome)) {
        const std::lock_guard hold(mutex_);
        return released_;
    }
    const auto now = boot_clock::now();
    const auto deadline = now + info_->request_timeout;
    if (auto lane = engine_->lanes().borrow()) {
        const auto answer = release_on(*lane, outcome, now);
        if (answer != ReleaseResult::unreachable) return answer;
        in_doubt_ = true;
    }
    auto answer = std::make_shared<Latch<ReleaseResult>>();
    ending_.emplace(Ending{{}, answer, deadline});
    submit_release();
    if (engine_->on_engine_thread() || engine_->closed()) return ReleaseResult::unreachable;
    return answer->take_until(deadline + std::chrono::seconds(1))
        .value_or(ReleaseResult::unreachable);
}

void Grant::give_back(spi::Lane& lane) noexcept {
    if (begin_release(Outcome::abandoned))
        (void)release_on(lane, Outcome::abandoned, boot_clock::now());
}

ReleaseResult Grant::release_on(spi::Lane& lane, Outcome outcome, boot_clock::time_point now) {
    spi::Held h = held(now, now + info_->request_timeout);
    h.how = outcome;
    lane.release(h);
    released_by_lane(h);
    return h.released;
}

bool Grant::released_by_lane(const spi::Held& h) {
    if (h.handed_on) info_->busy.store(true, std::memory_order_relaxed);
    if (h.released == ReleaseResult::unreachable) return false;
    Counters::add(engine_->counters.released);
    tell(Event::Kind::released);
    const std::lock_guard hold(mutex_);
    released_ = h.released;
    return true;
}

bool Grant::ridden() {
    in_doubt_ = !released_by_lane(release_);
    if (in_doubt_) return false;
    answer_release(release_.released);
    return true;
}

void Grant::async_release(Outcome outcome,
                          asio::any_completion_handler<Lease::ReleaseSignature> handler) {
    error_code ec;
    if (forked()) ec = make_error_code(errc::forked);
    if (ec || !begin_release(outcome)) {
        std::unique_lock hold(mutex_);
        const ReleaseResult r = ec ? ReleaseResult::unreachable : released_;
        hold.unlock();
        if (forked()) return;  // there is no thread in the child that could tell
        return engine_->complete_later(std::move(handler), ec, r);
    }
    auto passage = engine_->passage(handler);
    const auto now = boot_clock::now();
    const auto deadline = now + info_->request_timeout;
    ending_.emplace(Ending{engine_->callback(std::move(handler)), nullptr, deadline});
    if (passage) {
        prepare_release(now);
        const auto ride = std::make_shared<RideOf<Grant>>(engine_, std::move(*passage), self());
        if (ride->start(deadline)) return;
    }
    submit_release();
}

void Grant::drop(Outcome outcome) noexcept {
    if (begin_release(outcome)) submit_release();
    // The last handle closes the engine, and that waits for the release just posted. It must be the
    // caller's thread that does so.
    handle_.reset();
}

void Grant::submit_release() {
    engine_->submit(self());
}

void Grant::start_release() {
    release_in_background();
}

void Grant::refuse_release() {
    answer_release(ReleaseResult::unreachable);
}

void Grant::release_in_background() {
    if (releasing_) return;
    releasing_ = true;
    keep_ = self();
    engine_->begin_end();
    retry_.reset();
    release_sent_ = true;
    engine_->release(self());
    engine_->schedule().set(*this, answer_by());
}

spi::Held& Grant::prepare_release(boot_clock::time_point now) {
    release_ = held(now, now + info_->request_timeout);
    release_.how = outcome_;
    return release_;
}

void Grant::release_answered() {
    release_sent_ = false;
    const auto now = boot_clock::now();
    ReleaseResult r = release_.released;
    if (release_.handed_on) info_->busy.store(true, std::memory_order_relaxed);
    if (r == ReleaseResult::unreachable) {
        in_doubt_ = true;
        if (now >= valid_until() + spi::drift(info_->ttl)) {  // free by its ttl
            answer_release(r);
            return stop_releasing();
        }
        next_release_ = now + retry_.next();
        engine_->schedule().set(*this, std::min(answer_by(), next_release_));
        return;
    }
    // An earlier request of ours may have been the one that did it.
    if (in_doubt_ && r != ReleaseResult::released)
        r = now < valid_until() ? ReleaseResult::released : ReleaseResult::unreachable;
    if (state_.load() == LeaseState::released) {
        Counters::add(engine_->counters.released);
        tell(Event::Kind::released);
        const std::lock_guard hold(mutex_);
        released_ = r;
    }
    answer_release(r);
    stop_releasing();
}

void Grant::forget() {
    if (!releasing_) return;
    answer_release(ReleaseResult::unreachable);
    stop_releasing();
}

boot_clock::time_point Grant::answer_by() const noexcept {
    return ending_ ? ending_->answer_by : boot_clock::time_point::max();
}

void Grant::answer_release(ReleaseResult r) {
    if (!ending_) return;
    Ending told = std::move(*ending_);
    ending_.reset();
    error_code ec;
    if (r == ReleaseResult::unreachable) ec = make_error_code(errc::unavailable);
    if (told.latch) told.latch->set(r);
    if (told.callback) engine_->complete(std::move(told.callback), ec, r);
}

void Grant::stop_releasing() {
    releasing_ = false;
    engine_->schedule().cancel(*this);
    engine_->end_end();
    const auto last = std::move(keep_);
}

}  // namespace holdfast
