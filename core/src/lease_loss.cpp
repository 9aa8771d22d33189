// How a lease is lost, and what learns of it: the caller's stop_token, its handlers and the events.
#include <boost/asio/associated_cancellation_slot.hpp>
#include <utility>

#include "lease_impl.hpp"

namespace holdfast {

std::stop_token LeaseImpl::lost() {
    if (forked()) {
        std::stop_source lost_here;
        lost_here.request_stop();
        return lost_here.get_token();
    }
    const std::lock_guard hold(mutex_);
    if (!stop_.stop_possible()) {
        stop_ = std::stop_source();
        if (state_.load() == LeaseState::lost) stop_.request_stop();
    }
    return stop_.get_token();
}

void LeaseImpl::reported_lost(error_code why, std::string text) {
    if (!why || why == make_error_code(errc::lost)) why = gone_error();
    if (lives()) keep_error(error_of(why, std::move(text)));
    lose(why, false);
}

void LeaseImpl::lose(error_code why, bool give_back) {
    std::unique_lock hold(mutex_);
    if (!lives()) return;
    // A caller that has looked since then was told this reason.
    if (over()) why = end_reason();
    Loss loss = mark_lost(why);
    given_back_ = give_back;
    hold.unlock();
    notify(std::move(loss));
    for (Renewing& told : std::exchange(renewals_, {}))
        std::move(told)(why);
    if (give_back) release_in_background();
}

LeaseImpl::Loss LeaseImpl::mark_lost(error_code why) {
    Loss loss;
    loss.why = {why, last_error_.text};
    if (loss.why.text.empty() && last_error_.code && last_error_.code != why)
        loss.why.text = last_error_.code.message();
    loss.stop = stop_;
    loss.losing.swap(losing_);
    loss.losing.reverse();
    reason_ = why;
    outcome_ = Outcome::abandoned;
    released_ =
        why == errc::revoked ? ReleaseResult::owned_by_other : ReleaseResult::already_expired;
    state_.store(LeaseState::lost, std::memory_order_release);
    return loss;
}

void LeaseImpl::notify(Loss loss) {
    engine_->schedule().cancel(*this);
    const error_code why = loss.why.code;
    Counters::add(engine_->counters.losses(why));
    count_end(boot_clock::now());
    tell(Event::Kind::lost, std::move(loss.why));
    if (loss.stop.stop_possible())
        engine_->pool().post([s = std::move(loss.stop)]() mutable { s.request_stop(); });
    for (Losing& l : loss.losing)
        engine_->complete(l.callback, why);
}

void LeaseImpl::async_lost(asio::any_completion_handler<Lease::RenewSignature> handler) {
    if (forked()) return;
    std::unique_lock hold(mutex_);
    const LeaseState s = state_.load();
    if (s == LeaseState::lost || s == LeaseState::released) {
        const error_code ec = s == LeaseState::lost ? reason_ : make_error_code(errc::not_held);
        hold.unlock();
        return engine_->complete(std::move(handler), ec);
    }
    const std::uint64_t id = ++last_losing_;
    // Under the mutex and first: once it is in the list it may complete, which clears the slot.
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected())
        slot.assign([weak = weak_from_this(), id](asio::cancellation_type) {
            if (auto alive = std::static_pointer_cast<LeaseImpl>(weak.lock()))
                alive->stop_telling(id);
        });
    losing_.emplace_front(id, std::move(handler), *engine_);
}

void LeaseImpl::stop_telling(std::uint64_t id) {
    std::forward_list<Losing> cancelled;
    {
        const std::lock_guard hold(mutex_);
        auto before = losing_.before_begin();
        auto at = losing_.begin();
        for (; at != losing_.end() && at->id != id; ++at)
            before = at;
        if (at == losing_.end()) return;
        cancelled.splice_after(cancelled.before_begin(), losing_, before);
    }
    engine_->complete(cancelled.front().callback, make_error_code(errc::cancelled));
}

}  // namespace holdfast
