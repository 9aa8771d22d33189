// C5a: what waiting costs while nothing happens.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <thread>

#include "floors/redis_floor.hpp"
#include "floors/server_calls.hpp"
#include "measure/loop.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C5a";

void report(Bench& bench, const std::string& backend, const std::string& variant,
            std::size_t waiters, std::uint64_t requests, double seconds, double server_cpu_ms,
            std::string note) {
    Row row;
    row.scenario = id;
    row.backend = backend;
    row.variant = variant;
    row.x = static_cast<double>(waiters);
    row.n = requests;
    row.note = std::move(note);
    row.metric = "requests per waiter and second";
    row.unit = "1/s";
    bench.add_value(row, static_cast<double>(requests) / static_cast<double>(waiters) / seconds);
    if (server_cpu_ms < 0) return;
    row.metric = "server CPU";
    row.unit = "%";
    row.note = "of one core, all waiters together";
    bench.add_value(row, server_cpu_ms / seconds / 10);
}

/// Waiters of one client, while one of them holds the lock.
class IdleWaiters {
public:
    IdleWaiters(const Deployment& d, std::size_t n)
        : client_(Bench::open(d, loop_.get_executor())) {
        holder_ = Bench::lock(client_, d, "bench/idle");
        auto lease = holder_->acquire();
        if (!lease) check(lease.error(), "acquire");
        lease_ = std::move(*lease);
        for (std::size_t i = 0; i < n; ++i) {
            Waiter& w = waiters_.emplace_back();
            w.lock = Bench::lock(client_, d, "bench/idle");
            auto handler = [this](error_code, const Lease& granted) {
                ++ended_;
                if (granted.valid()) ++granted_;
            };
            w.lock->async_acquire({},
                                  asio::bind_cancellation_slot(w.stop.slot(), std::move(handler)));
        }
    }
    ~IdleWaiters() {
        waiters_.clear();
        client_.close();
    }
    IdleWaiters(const IdleWaiters&) = delete;
    IdleWaiters& operator=(const IdleWaiters&) = delete;

    void idle(double seconds) {
        run_until(loop_, Clock::now() + in_seconds(seconds), [] { return false; });
    }
    std::uint64_t requests() const { return client_.stats().requests; }
    void end() {
        if (ended_ != 0) throw SelfCheck("a waiter's call ended while the lock was held");
        for (Waiter& w : waiters_)
            w.stop.emit(asio::cancellation_type::terminal);
        if (!run_until(loop_, Clock::now() + std::chrono::seconds(30),
                       [&] { return ended_ == waiters_.size(); }))
            throw SelfCheck("waiters did not end when cancelled");
        if (granted_ != 0) throw SelfCheck("two holders: a waiter was granted a lock that is held");
        lease_.release();
    }

private:
    struct Waiter {
        std::unique_ptr<Lock> lock;
        asio::cancellation_signal stop;
    };
    asio::io_context loop_;
    Client client_;
    std::unique_ptr<Lock> holder_;
    Lease lease_;
    std::deque<Waiter> waiters_;
    std::size_t ended_ = 0, granted_ = 0;
};

void run_holdfast(Bench& bench, const Deployment& d) {
    constexpr std::size_t waiters = 100;
    auto* server = d.backend == "redis" ? bench.site.redis() : nullptr;
    IdleWaiters idle(d, waiters);
    idle.idle(bench.options.pick(1.0, 1.0, 2.0));  // until everybody is in line
    const auto before = idle.requests();
    const auto cpu_before = server ? server_calls(*server) : ServerCalls{};
    const double wanted = bench.options.pick(2.5, 3.0, 10.0);
    const auto start = Clock::now();
    idle.idle(wanted);
    const double seconds = seconds_since(start);
    const auto requests = idle.requests() - before;
    if (seconds < wanted) throw SelfCheck("the waiters were not watched for long enough");
    const double cpu = server ? server_calls(*server).since(cpu_before).cpu_ms : -1;
    idle.end();
    report(bench, d.backend, d.variant, waiters, requests, seconds, cpu,
           "100 waiters of one client, renewals of the holder included");
}

/// The documents' waiter on bare hiredis: tries, pauses for `period`, tries again; zero: spins.
void run_polling(Bench& bench, const std::string& variant, std::size_t waiters,
                 std::chrono::milliseconds period) {
    auto& server = *bench.site.redis();
    const auto connection = connect_redis(server.port());
    const auto owned = ask(connection.get(), {"SET", "bench/poll", "holder", "PX", "60000"});
    if (owned->type != REDIS_REPLY_STATUS) throw SelfCheck("polling: the holder was refused");
    std::deque<Clock::time_point> due;
    const auto start = Clock::now();
    for (std::size_t i = 0; i < waiters; ++i)  // spread over the period, as independent waiters are
        due.push_back(start + period * static_cast<int>(i) / static_cast<int>(waiters));
    const double wanted = bench.options.pick(1.0, 3.0, 10.0);
    const auto before = server_calls(server);
    std::uint64_t requests = 0;
    while (seconds_since(start) < wanted) {
        if (period.count() > 0) std::this_thread::sleep_until(due.front());
        const auto reply = ask(connection.get(), {"SET", "bench/poll", "w", "NX", "PX", "10000"});
        if (reply->type != REDIS_REPLY_NIL) throw SelfCheck("polling: the lock was not held");
        ++requests;
        due.push_back(due.front() + period);
        due.pop_front();
    }
    const double seconds = seconds_since(start);
    const double cpu = server_calls(server).since(before).cpu_ms;
    ask(connection.get(), {"DEL", "bench/poll"});
    report(bench, "redis", variant, waiters, requests, seconds, cpu, "bare hiredis, SET NX PX");
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Step> steps;
    for (const Deployment& d : site.deployments())
        if (d.variant != "durable" && d.variant != "plain")
            steps.push_back(
                {d.label() + " 100 idle waiters", [d](Bench& bench) { run_holdfast(bench, d); }});
    if (!site.has_redis()) return steps;
    steps.push_back({"redis 100 waiters, 50 ms poll", [](Bench& bench) {
                         run_polling(bench, "50 ms poll", 100, milliseconds(50));
                     }});
    steps.push_back({"redis 10 waiters, 3 ms park",
                     [](Bench& bench) { run_polling(bench, "3 ms park", 10, milliseconds(3)); }});
    steps.push_back({"redis busy spin",
                     [](Bench& bench) { run_polling(bench, "busy spin", 1, milliseconds(0)); }});
    return steps;
}

}  // namespace

Scenario c5a_idle_waiters() {
    return {
        id, "what 100 waiters cost while nothing happens",
        "One caller holds the lock, 100 others wait; the requests of all of them are counted over "
        "some seconds. Polling, parking and spinning are bare hiredis loops.",
        false, plan};
}

}  // namespace holdfast::bench
