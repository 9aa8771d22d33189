// Releases a lease: on a lane, or on the engine with retries.
#include <algorithm>

#include "explain.hpp"
#include "holdfast/spi/drift.hpp"
#include "holdfast/spi/safe_text.hpp"
#include "lease_impl.hpp"

namespace holdfast {

std::optional<boot_clock::time_point> LeaseImpl::begin_release(Outcome outcome) noexcept {
    std::forward_list<Losing> losing;
    std::optional<Loss> loss;
    bool late = false;
    {
        const std::lock_guard hold(mutex_);
        if (over()) loss = mark_lost(end_reason());
        // The caller of a lost lease has stopped now, and its lock delay may end.
        late = !loss && state_.load() == LeaseState::lost && !given_back_ &&
               info_->lock_delay > milliseconds::zero();
        if (!lives() && !loss && !late) return std::nullopt;
        if (loss || late) {
            given_back_ = true;
        } else {
            state_.store(LeaseState::released, std::memory_order_release);
            outcome_ = outcome;
            losing.swap(losing_);
            losing.reverse();
        }
    }
    const auto now = boot_clock::now();
    if (loss) {
        notify(std::move(*loss));
    } else if (!late) {
        engine_->schedule().cancel(*this);
        count_end(now);
    }
    for (Losing& l : losing)
        engine_->complete(l.callback, make_error_code(errc::not_held));
    return now;
}

ReleaseResult LeaseImpl::release(Outcome outcome) noexcept {
    if (forked()) return ReleaseResult::unreachable;
    const auto now = begin_release(outcome);
    if (!now) {
        const std::lock_guard hold(mutex_);
        return released_;
    }
    try {
        return release_since(*now);
    } catch (const std::exception&) {
        return ReleaseResult::unreachable;  // without memory; the server frees it by itself
    }
}

ReleaseResult LeaseImpl::release_since(boot_clock::time_point now) {
    const auto deadline = now + info_->request_timeout;
    auto lane = engine_->lanes().borrow();
    if (lane) {
        const auto answer = release_on(*lane, now);
        if (answer != ReleaseResult::unreachable) return answer;
    }
    auto answer = std::make_shared<OneShot<ReleaseResult>>();
    ending_.emplace(answer, deadline);
    engine_->submit(self());
    lane.give_back();  // last: close() waits for lanes first, then for the engine
    if (engine_->on_engine_thread() || engine_->closed()) return ReleaseResult::unreachable;
    return answer->take_until(deadline + std::chrono::seconds(1))
        .value_or(ReleaseResult::unreachable);
}

void LeaseImpl::give_back(spi::Lane& lane) noexcept {
    const auto now = begin_release(Outcome::abandoned);
    if (!now) return;
    try {
        (void)release_on(lane, *now);
    } catch (const std::exception&) {  // as above
    }
}

ReleaseResult LeaseImpl::release_on(spi::Lane& lane, boot_clock::time_point now) {
    spi::Held h = held(now, now + info_->request_timeout);
    h.outcome = outcome_;
    lane.release(h);
    if (h.handed_on) info_->busy.store(true, std::memory_order_relaxed);
    if (h.released == ReleaseResult::unreachable) {
        keep_error(not_released(h));
        return h.released;
    }
    return released(h.released);
}

RequestError LeaseImpl::not_released(spi::Held& h) {
    in_doubt_ = true;
    if (is_permanent(h.release_error)) ++refusals_;
    return error_of(h.release_error, std::move(h.detail));
}

ReleaseResult LeaseImpl::released(ReleaseResult answer) {
    const bool lost = state_.load(std::memory_order_acquire) == LeaseState::lost;
    if (lost && answer == ReleaseResult::released) answer = ReleaseResult::already_expired;
    if (!lost) {
        Counters::add(engine_->counters.released);
        tell(Event::Kind::released);
    }
    const std::lock_guard hold(mutex_);
    released_ = answer;
    if (!lost) last_error_ = {};
    return answer;
}

void LeaseImpl::async_release(Outcome outcome,
                              asio::any_completion_handler<Lease::ReleaseSignature> handler) {
    if (forked()) return;  // there is no thread in the child that could tell
    const auto now = begin_release(outcome);
    if (!now) {
        std::unique_lock hold(mutex_);
        const ReleaseResult r = released_;
        hold.unlock();
        return engine_->complete(std::move(handler), error_code(), r);
    }
    ending_.emplace(std::move(handler), *engine_, *now + info_->request_timeout);
    engine_->submit(self());
}

void LeaseImpl::drop(Outcome outcome) noexcept {
    // The schedule and every mutex are the parent's, in whatever state the fork found them: a
    // child's copy stays as it is.
    if (forked()) {
        keep_ = self();
        return;
    }
    if (begin_release(outcome)) engine_->submit(self());
    // Where this is the client's last, its end closes the engine, and waits for the release just
    // posted: on the caller's thread.
    client_.reset();
}

void LeaseImpl::start_release() {
    for_caller_ = true;
    if (!in_doubt_) begin_answer_time();  // else a lane has had that time already
    release_in_background();
}

void LeaseImpl::refuse_release() {
    answer_release(ReleaseResult::unreachable);
}

void LeaseImpl::release_in_background() {
    if (releasing_) return;
    releasing_ = true;
    keep_ = self();
    engine_->cleanup_started();
    retry_.reset();
    release_sent_ = true;
    engine_->release(self());
    engine_->schedule().set(*this, answer_by());
}

void LeaseImpl::unanswered(boot_clock::time_point now) {
    if (ending_ && now + info_->request_timeout / 2 >= ending_->answer_by)
        answer_release(ReleaseResult::unreachable);
}

void LeaseImpl::begin_answer_time() {
    if (!ending_) return;
    ending_->answer_by = std::max(ending_->answer_by, boot_clock::now() + info_->request_timeout);
}

bool LeaseImpl::to_be_sent() {
    queued_here_ = false;
    begin_answer_time();
    if (ending_) engine_->schedule().set(*this, answer_by());
    return true;
}

spi::Held* LeaseImpl::prepare_release(boot_clock::time_point now) {
    release_ = held(now, now + info_->request_timeout);
    release_.outcome = outcome_;
    return &release_;
}

void LeaseImpl::release_answered() {
    release_sent_ = false;
    const auto now = boot_clock::now();
    ReleaseResult r = release_.released;
    if (release_.handed_on) info_->busy.store(true, std::memory_order_relaxed);
    if (r == ReleaseResult::unreachable) {
        const RequestError why = not_released(release_);
        if (for_caller_) keep_error(why);  // else it still says why the lease was lost
        const bool refused = refusals_ > 1;
        if (refused)
            engine_->events->warn(spi::quoted_name(info_->name) +
                                  ": the server refused the release (" +
                                  (why.text.empty() ? why.code.message() : why.text) +
                                  "), so the lock stays closed until its time is over");
        if (refused || now >= kept_until()) {
            answer_release(r, refused ? why.code : make_error_code(errc::unavailable));
            return stop_releasing();
        }
        next_release_ = now + retry_.next();
        engine_->schedule().set(*this, std::min(answer_by(), next_release_));
        return;
    }
    // An earlier request of ours may have been the one that did it.
    if (in_doubt_ && r != ReleaseResult::released && state_.load() == LeaseState::released)
        r = now < valid_until() ? ReleaseResult::released : ReleaseResult::unreachable;
    if (for_caller_) r = released(r);
    answer_release(r);
    stop_releasing();
}

void LeaseImpl::forget() {
    if (!releasing_) return;
    answer_release(ReleaseResult::unreachable);
    stop_releasing();
}

void LeaseImpl::kept_from(boot_clock::time_point by) noexcept {
    const milliseconds length = info_->longest();
    kept_until_ = std::max(kept_until_, by + length + spi::drift(length));
}

boot_clock::time_point LeaseImpl::kept_until() const noexcept {
    return std::max(kept_until_, since_ + info_->min_hold);
}

boot_clock::time_point LeaseImpl::answer_by() const noexcept {
    return ending_ ? ending_->answer_by : boot_clock::time_point::max();
}

void LeaseImpl::answer_release(ReleaseResult r, error_code why) {
    if (!ending_) return;
    const error_code ec = r == ReleaseResult::unreachable ? why : error_code();
    if (ending_->latch) ending_->latch->set(r);
    engine_->complete(ending_->callback, ec, r);
    ending_.reset();
}

void LeaseImpl::stop_releasing() {
    releasing_ = false;
    engine_->schedule().cancel(*this);
    engine_->cleanup_done();
    const auto last = std::move(keep_);
}

}  // namespace holdfast
