// C3, third part: a hand-off to waiters who poll, after a job of some length, and what it costs
// that they ask meanwhile.
#include <fmt/format.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>

#include "measure/loop.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C3";
constexpr std::size_t waiters = 10;
constexpr auto cap = std::chrono::seconds(30);

/// Callers with a client each. One of them holds, the others wait.
class Pollers {
public:
    explicit Pollers(const Deployment& d) {
        for (std::size_t i = 0; i <= waiters; ++i) {
            One& one = all_.emplace_back();
            one.client.emplace(Bench::open(d, loop_.get_executor()));
            one.lock = Bench::lock(*one.client, d, "bench/polled");
            ask(one);
        }
        await_grant();
    }
    ~Pollers() {
        for (One& one : all_)
            one.lock.reset();
        for (One& one : all_)
            one.client->close();
    }
    Pollers(const Pollers&) = delete;
    Pollers& operator=(const Pollers&) = delete;

    /// The holder's job, during which the others wait. How many requests all sent.
    std::uint64_t job(double seconds) {
        const auto before = requests();
        run_until(loop_, Clock::now() + in_seconds(seconds), [] { return false; });
        return requests() - before;
    }
    /// The holder releases and asks again when somebody else has it. Milliseconds until then.
    double hand_on() {
        One& before = *holder_;
        holder_ = nullptr;
        released_ = false;
        const auto start = Clock::now();
        before.lease.async_release(Outcome::done, [this](error_code, ReleaseResult result) {
            released_ = result == ReleaseResult::released;
        });
        await_grant();
        const double ms = std::chrono::duration<double, std::milli>(granted_ - start).count();
        run_until(loop_, Clock::now() + cap, [this] { return released_; });
        if (!released_) throw SelfCheck("polled: a release was not answered");
        ask(before);
        return ms;
    }
    void end() {
        for (One& one : all_)
            if (&one != holder_) one.stop.emit(asio::cancellation_type::terminal);
        if (!run_until(loop_, Clock::now() + cap, [this] { return waiting_ == 0; }))
            throw SelfCheck("polled: waiters did not end when cancelled");
        holder_->lease.release();
    }

private:
    struct One {
        std::optional<Client> client;
        std::unique_ptr<Lock> lock;
        asio::cancellation_signal stop;
        Lease lease;
    };
    void ask(One& one) {
        ++waiting_;
        auto handler = [this, &one](error_code ec, Lease lease) {
            --waiting_;
            if (ec) return;
            if (holder_ != nullptr) throw SelfCheck("polled: granted while another held");
            granted_ = Clock::now();
            one.lease = std::move(lease);
            holder_ = &one;
        };
        one.lock->async_acquire({},
                                asio::bind_cancellation_slot(one.stop.slot(), std::move(handler)));
    }
    void await_grant() {
        if (!run_until(loop_, Clock::now() + cap, [this] { return holder_ != nullptr; }))
            throw SelfCheck("polled: nobody was granted the lock");
    }
    std::uint64_t requests() const {
        std::uint64_t sum = 0;
        for (const One& one : all_)
            sum += one.client->stats().requests;
        return sum;
    }

    asio::io_context loop_;
    std::deque<One> all_;
    One* holder_ = nullptr;
    std::size_t waiting_ = 0;
    bool released_ = false;
    Clock::time_point granted_{};
};

void run(Bench& bench, const Deployment& d) {
    const double seconds = bench.options.pick(0.4, 0.5, 1.0);
    const int rounds = bench.options.pick(7, 11, 31);
    Pollers pollers(d);
    pollers.job(seconds);  // until all are connected and wait
    Latency hand_off;
    std::uint64_t requests = 0;
    int done = 0;
    for (; done < rounds && !bench.stopped(); ++done) {
        hand_off.add_us(1e3 * pollers.hand_on());
        requests += pollers.job(seconds);
    }
    pollers.end();
    if (done == 0) return;
    Row row = row_of(id, d, waiters);
    row.n = static_cast<std::uint64_t>(done);
    row.unit = "ms";
    row.note = fmt::format("jobs of {} ms; release called -> another one granted", 1e3 * seconds);
    row.metric = "hand-off after a job, p50";
    bench.add_value(row, hand_off.quantile_us(0.5) / 1e3);
    row.metric = "hand-off after a job, longest";
    bench.add_value(row, hand_off.quantile_us(1) / 1e3);
    row.metric = "requests per second during a job";
    row.unit = "1/s";
    row.note = "of all clients together, the holder's renewals included";
    bench.add_value(row, static_cast<double>(requests) / (seconds * done));
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Step> steps;
    for (const Deployment& d : site.deployments()) {
        const bool polls =
            !d.in_process && !Bench::open(d).capabilities().has(Capability::notified);
        if (polls && d.variant != "durable" && d.variant != "no token")
            steps.push_back({d.label() + " hand-off after a job, 10 poll",
                             [d](Bench& bench) { run(bench, d); }});
    }
    return steps;
}

}  // namespace

Scenario c3_polled() {
    return {id, "hand-off to one of 10 waiters who poll, after a job",
            "Eleven callers with a client each: one holds for the time of a job, the others wait; "
            "then it releases, and asks again when another one was granted. Backends without "
            "notifications only.",
            true, plan};
}

}  // namespace holdfast::bench
