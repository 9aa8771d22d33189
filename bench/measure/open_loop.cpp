#include "measure/open_loop.hpp"

#include <utility>

namespace holdfast::bench {

OpenLoop::OpenLoop(const Deployment& deployment, std::size_t names, const std::string& prefix)
    : client_(Bench::open(deployment, loop_.get_executor())) {
    for (std::size_t i = 0; i < names; ++i) {
        Slot& slot = slots_.emplace_back();
        slot.lock = Bench::lock(client_, deployment, prefix + "/" + std::to_string(i));
        free_.push_back(&slot);
    }
}

OpenLoop::~OpenLoop() {
    slots_.clear();
    client_.close();
}

OpenLoopResult OpenLoop::run(double per_second, double seconds, std::uint64_t seed) {
    now_ = {};
    failure_ = {};
    const auto begin = Clock::now();
    until_ = begin + in_seconds(seconds);
    arrivals_.emplace(per_second, begin, seed);
    loop_.restart();
    const auto guard = asio::make_work_guard(loop_);
    start_due();
    while (!all_came() || free_.size() < slots_.size())
        if (loop_.run_one_for(std::chrono::seconds(30)) == 0)
            throw SelfCheck("open loop: nothing was answered for 30 s");
    check(failure_, "open loop: " + failed_in_);
    now_.seconds = seconds_since(begin);
    return std::exchange(now_, {});
}

/// Starts the callers that are due by now, while there are names; the rest is late, and its time
/// runs.
void OpenLoop::start_due() {
    while (!all_came() && !free_.empty() && arrivals_->next() <= Clock::now()) {
        Slot& slot = *free_.back();
        free_.pop_back();
        const auto meant = arrivals_->next();
        arrivals_->advance();
        start(slot, meant);
    }
    if (all_came() || free_.empty()) return;  // else the next name that gets free looks again
    timer_.expires_at(arrivals_->next());
    timer_.async_wait([this](const error_code& ec) {
        if (!ec) start_due();
    });
}

void OpenLoop::start(Slot& slot, Clock::time_point meant) {
    slot.meant = meant;
    slot.called = Clock::now();
    slot.lock->async_acquire(
        {}, [this, &slot](error_code ec, Lease lease) { granted(slot, ec, std::move(lease)); });
}

void OpenLoop::granted(Slot& slot, error_code ec, Lease lease) {
    if (ec) {
        failure_ = ec;
        failed_in_ = "acquire";
        free_.push_back(&slot);
        return;
    }
    slot.lease = std::move(lease);
    slot.lease.async_release(Outcome::done, [this, &slot](error_code e, ReleaseResult answer) {
        ended(slot, e, answer);
    });
}

void OpenLoop::ended(Slot& slot, error_code ec, ReleaseResult answer) {
    const bool none_was_free = free_.empty();
    free_.push_back(&slot);
    if (ec || answer != ReleaseResult::released) {
        failure_ = ec ? ec : make_error_code(errc::unavailable);
        failed_in_ = "release: " + std::string(to_string(answer));
        return;
    }
    const auto now = Clock::now();
    now_.from_the_start.add(now - slot.meant);
    now_.from_the_call.add(now - slot.called);
    ++now_.cycles;
    if (none_was_free) start_due();
}

}  // namespace holdfast::bench
