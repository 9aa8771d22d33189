#include "measure/in_flight.hpp"

#include <limits>

namespace holdfast::bench {

InFlight::InFlight(const Deployment& deployment, std::size_t slots, const std::string& prefix,
                   const Wants& wants, bool one_name)
    : how_(wants.how), client_(Bench::open(deployment, loop_.get_executor())) {
    for (std::size_t i = 0; i < slots; ++i) {
        slots_.emplace_back();
        const std::string name = one_name ? "all" : std::to_string(i);
        slots_.back().lock = Bench::lock(client_, deployment, prefix + "/" + name, wants.lock);
    }
}

InFlight::~InFlight() {
    slots_.clear();
    client_.close();
}

std::size_t InFlight::run_cycles(std::size_t cycles, OnGrant on_grant) {
    to_start_ = cycles;
    until_ = Clock::time_point::max();
    on_grant_ = std::move(on_grant);
    return run();
}

std::size_t InFlight::run_for(double seconds) {
    to_start_ = std::numeric_limits<std::size_t>::max();
    until_ = Clock::now() + in_seconds(seconds);
    on_grant_ = {};
    return run();
}

std::size_t InFlight::run() {
    done_ = 0;
    failure_ = {};
    for (Slot& slot : slots_)
        start(slot, Clock::now());
    const auto guard = asio::make_work_guard(loop_);
    while (under_way_ > 0) {
        const auto before = done_;
        loop_.restart();
        loop_.run_for(std::chrono::seconds(30));
        if (under_way_ > 0 && done_ == before)
            throw SelfCheck("in flight: nothing was answered for 30 s");
    }
    check(failure_, "in flight: " + failed_in_);
    return done_;
}

void InFlight::start(Slot& slot, Clock::time_point now) {
    if (to_start_ == 0 || failure_ || now >= until_) return;
    --to_start_;
    ++under_way_;
    slot.started = now;
    slot.lock->async_acquire(
        how_, [this, &slot](error_code ec, Lease lease) { granted(slot, ec, std::move(lease)); });
}

void InFlight::granted(Slot& slot, error_code ec, Lease lease) {
    if (ec) {
        failure_ = ec;
        failed_in_ = "acquire";
        return over();
    }
    slot.lease = std::move(lease);
    if (on_grant_) on_grant_(slot.lease);
    slot.lease.async_release(Outcome::done, [this, &slot](error_code e, ReleaseResult answer) {
        ended(slot, e, answer);
    });
}

void InFlight::ended(Slot& slot, error_code ec, ReleaseResult answer) {
    if (ec || answer != ReleaseResult::released) {
        failure_ = ec ? ec : make_error_code(errc::unavailable);
        failed_in_ = "release: " + std::string(to_string(answer));
        return over();
    }
    ++done_;
    const auto now = Clock::now();
    latency->add(now - slot.started);
    start(slot, now);
    over();
}

void InFlight::over() {
    if (--under_way_ == 0) loop_.stop();
}

}  // namespace holdfast::bench
