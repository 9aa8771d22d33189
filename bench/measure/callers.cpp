#include "measure/callers.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <utility>

#include "measure/cpu.hpp"
#include "measure/hand_offs.hpp"
#include "measure/loop.hpp"

namespace holdfast::bench {

Callers::Callers(const Deployment& deployment, std::size_t callers, Conflict how,
                 const std::string& name)
    : how_(how) {
    for (std::size_t i = 0; i < callers; ++i) {
        const Client& client = clients_.emplace_back(Bench::open(deployment, loop_.get_executor()));
        Caller& caller = callers_.emplace_back(loop_);
        caller.lock = Bench::lock(client, deployment, name);
        auto lease = caller.lock->acquire();
        if (!lease) check(lease.error(), "callers: acquire");
        if (lease->release() != ReleaseResult::released)
            throw SelfCheck("callers: a release was not answered");
    }
    for (Caller& caller : callers_)
        start_other(caller);
}

Callers::~Callers() {
    callers_.clear();
    for (Client& client : clients_)
        client.close();
}

std::uint64_t Callers::requests() const {
    std::uint64_t sum = 0;
    for (const Client& client : clients_)
        sum += client.stats().requests;
    return sum;
}

CallersResult Callers::run_for(double seconds) {
    now_ = {};
    const auto before = requests();
    const double cpu = own_cpu_ms();
    const auto start = Clock::now();
    run_until(loop_, start + in_seconds(seconds), [&] { return bool(failure_); });
    run_until(loop_, start + in_seconds(at_most_for_a_grant),
              [&] { return failure_ || now_.grants > 0; });
    check(failure_, "callers");
    now_.seconds = seconds_since(start);
    now_.client_cpu_ms = own_cpu_ms() - cpu;
    now_.requests = requests() - before;
    now_.longest_ms = now_.to_grant.max_us() / 1e3;
    for (const Caller& caller : callers_)
        if (caller.asking) now_.longest_ms = std::max(now_.longest_ms, millis_since(caller.asked));
    return std::exchange(now_, {});
}

void Callers::end() {
    ending_ = true;
    for (Caller& caller : callers_)
        caller.stop.emit(asio::cancellation_type::terminal);
    if (!run_until(loop_, Clock::now() + std::chrono::seconds(30), [&] { return under_way_ == 0; }))
        throw SelfCheck("callers did not end when cancelled");
    check(failure_, "callers");
}

void Callers::start_other(Caller& caller) {
    if (ending_ || caller.busy) return;
    caller.busy = true;
    ++under_way_;
    caller.other.expires_after(other_job);
    caller.other.async_wait([this, &caller](const error_code&) { other_done(caller); });
}

void Callers::other_done(Caller& caller) {
    --under_way_;
    caller.busy = false;
    ++now_.other_jobs;
    if (!caller.asking && !caller.holding) ask(caller);
    if (how_ == Conflict::defers && !caller.holding) start_other(caller);
}

void Callers::ask(Caller& caller) {
    if (ending_) return;
    ++under_way_;
    caller.asking = true;
    caller.asked = Clock::now();
    AcquireOptions how;
    if (how_ == Conflict::fails) how.wait = milliseconds::zero();
    auto handler = [this, &caller](error_code ec, Lease lease) {
        answered(caller, ec, std::move(lease));
    };
    caller.lock->async_acquire(
        how, asio::bind_cancellation_slot(caller.stop.slot(), std::move(handler)));
}

void Callers::answered(Caller& caller, error_code ec, Lease lease) {
    --under_way_;
    caller.asking = false;
    if (ec == errc::contended && how_ == Conflict::fails) {
        ++now_.refused;
        return start_other(caller);
    }
    if (ec) {
        if (!ending_) failure_ = ec;
        return;
    }
    now_.to_grant.add(Clock::now() - caller.asked);
    ++now_.grants;
    if (inside_++ > 0) ++now_.two_at_once;
    caller.holding = true;
    caller.lease = std::move(lease);
    ++under_way_;
    caller.guarded.expires_after(guarded_job);
    caller.guarded.async_wait([this, &caller](const error_code&) { guarded_done(caller); });
}

void Callers::guarded_done(Caller& caller) {
    --inside_;
    caller.lease.async_release(Outcome::done, [this, &caller](error_code ec, ReleaseResult answer) {
        released(caller, ec, answer);
    });
}

void Callers::released(Caller& caller, error_code ec, ReleaseResult answer) {
    --under_way_;
    caller.holding = false;
    if (ec || answer != ReleaseResult::released)
        failure_ = ec ? ec : make_error_code(errc::unavailable);
    else
        start_other(caller);
}

}  // namespace holdfast::bench
