#include "measure/crowd.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <utility>

#include "measure/loop.hpp"

namespace holdfast::bench {

std::size_t clients_for(std::size_t waiters) {
    return std::min<std::size_t>(waiters + 1, 10);
}

bool is_reader(std::size_t i, std::size_t all, std::size_t readers) {
    return i * 61 % all <
           all * readers / 100;  // 61: a prime that divides no number of callers here
}

Crowd::Crowd(const Deployment& deployment, std::size_t waiters, const std::string& name,
             milliseconds inside, std::size_t readers, const Wants& others)
    : stays_(inside) {
    const std::size_t clients = deployment.in_process ? 1 : clients_for(waiters);
    for (std::size_t i = 0; i < clients; ++i)
        clients_.push_back(Bench::open(deployment, loop_.get_executor()));
    for (std::size_t i = 0; i <= waiters; ++i) {
        callers_.emplace_back(loop_);
        const Wants& wants = is_reader(i, waiters + 1, readers) ? to_read
                             : readers > 0                      ? to_write
                                                                : others;
        callers_.back().lock = Bench::lock(clients_[i % clients], deployment, name, wants.lock);
        callers_.back().how = wants.how;
    }
    for (Caller& caller : callers_)
        start(caller);
}

Crowd::~Crowd() {
    callers_.clear();
    for (Client& client : clients_)
        client.close();
}

std::uint64_t Crowd::requests() const {
    std::uint64_t sum = 0;
    for (const Client& client : clients_)
        sum += client.stats().requests;
    return sum;
}

CrowdResult Crowd::run_for(double seconds) {
    now_ = {};
    for (Caller& caller : callers_)
        caller.share = {caller.reads(), 0, 0};
    const auto before = requests();
    const auto start_time = Clock::now();
    run_until(loop_, start_time + in_seconds(seconds), [&] { return bool(failure_); });
    run_until(loop_, start_time + in_seconds(at_most_for_a_grant),
              [&] { return failure_ || now_.grants > 0; });
    check(failure_, "crowd");
    now_.seconds = seconds_since(start_time);
    now_.requests = requests() - before;
    for (const Caller& caller : callers_) {
        now_.shares.push_back(caller.share);
        if (!caller.waits) continue;
        double& longest_ms = now_.shares.back().longest_ms;
        longest_ms = std::max(longest_ms, millis_since(caller.asked_at));
    }
    return std::exchange(now_, {});
}

void Crowd::end() {
    ending_ = true;
    for (Caller& caller : callers_)
        caller.stop.emit(asio::cancellation_type::terminal);
    if (!run_until(loop_, Clock::now() + std::chrono::seconds(30), [&] { return under_way_ == 0; }))
        throw SelfCheck("crowd: waiters did not end when cancelled");
    check(failure_, "crowd");
}

void Crowd::start(Caller& caller) {
    if (ending_) return;
    ++under_way_;
    caller.asked = asked_++;
    asking_.push_back(caller.asked);
    caller.asked_at = Clock::now();
    caller.waits = true;
    auto handler = [this, &caller](error_code ec, Lease lease) {
        granted(caller, ec, std::move(lease));
    };
    caller.lock->async_acquire(
        caller.how, asio::bind_cancellation_slot(caller.stop.slot(), std::move(handler)));
}

void Crowd::granted(Caller& caller, error_code ec, Lease lease) {
    const auto ticket = std::find(asking_.begin(), asking_.end(), caller.asked);
    const bool oldest = ticket == asking_.begin();
    asking_.erase(ticket);
    caller.waits = false;
    if (ec) {
        --under_way_;
        if (!ending_) failure_ = ec;
        return;
    }
    turns_.granted(&caller, now_);
    ++caller.share.grants;
    caller.share.longest_ms = std::max(caller.share.longest_ms, millis_since(caller.asked_at));
    const bool alone = !caller.reads();
    if (alone ? inside_ > 0 : writers_inside_ > 0) ++now_.two_at_once;
    ++inside_;
    if (alone) ++writers_inside_;
    if (oldest) ++now_.to_the_oldest;
    caller.lease = std::move(lease);
    if (stays_ == milliseconds::zero()) return leave(caller);
    caller.done.expires_after(stays_);
    caller.done.async_wait([this, &caller](const error_code&) { leave(caller); });
}

void Crowd::leave(Caller& caller) {
    --inside_;
    if (!caller.reads()) --writers_inside_;
    turns_.let_go();
    caller.lease.async_release(Outcome::done, [this, &caller](error_code e, ReleaseResult answer) {
        released(caller, e, answer);
    });
}

void Crowd::released(Caller& caller, error_code ec, ReleaseResult answer) {
    --under_way_;
    if (ec || answer != ReleaseResult::released)
        failure_ = ec ? ec : make_error_code(errc::unavailable);
    else
        start(caller);
}

}  // namespace holdfast::bench
