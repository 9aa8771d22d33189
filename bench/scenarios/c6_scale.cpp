// C6: what one client that holds, or waits for, 10,000 locks costs its process.
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <holdfast/lab/wait_until.hpp>
#include <mutex>
#include <thread>

#include "measure/cpu.hpp"
#include "measure/loop.hpp"
#include "measure/wants.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C6";
constexpr auto cap = std::chrono::seconds(120);
constexpr auto ttl = milliseconds(10'000);
// So many at once, as a program would start them: none waits for longer than a request may.
constexpr std::size_t at_once = 500;
constexpr std::size_t most_repeated = 2 * at_once;

/// What this process uses.
struct Use {
    double heap = 0;  ///< bytes given out by malloc, all arenas
    double resident = 0;
    std::size_t threads = 0;
    double cpu_ms = own_cpu_ms();
    Clock::time_point at = Clock::now();

    static Use now() {
        Use u;
        const auto info = ::mallinfo2();
        u.heap = static_cast<double>(info.uordblks + info.hblkhd);
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages >> pages;
        u.resident = static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
        const std::filesystem::directory_iterator tasks("/proc/self/task");
        u.threads = static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
        return u;
    }
};

/// Many requests of one client, all on one thread.
class Many {
public:
    explicit Many(const Deployment& d, const Wants& wants = a_mutex)
        : deployment_(d), wants_(wants), client_(Bench::open(d, loop_.get_executor())) {
        wants_.lock.ttl = ttl;
    }
    ~Many() {
        leases_.clear();
        waiters_.clear();
        client_.close();
    }
    Many(const Many&) = delete;
    Many& operator=(const Many&) = delete;

    /// Acquires names `from` to `to`, and keeps them. Readers all read one. What gets no answer,
    /// since a disk stood still, is asked for again.
    void hold(std::size_t from, std::size_t to) {
        leases_.resize(to);
        std::size_t next = from, under_way = 0;
        error_code failure;
        std::function<void(std::size_t)> acquire = [&](std::size_t i) {
            ++under_way;
            const bool one_name = wants_.how.mode == Mode::shared;
            const auto name = one_name ? "bench/c6/read" : fmt::format("bench/c6/{}", i);
            locks_.push_back(Bench::lock(client_, deployment_, name, wants_.lock));
            locks_.back()->async_acquire(wants_.how, [&, i](error_code ec, Lease lease) {
                --under_way;
                const bool silent = ec == errc::in_doubt || ec == errc::unavailable;
                if (silent && repeated_ < most_repeated) {
                    ++repeated_;
                    return acquire(i);
                }
                if (ec) failure = ec;
                leases_[i] = std::move(lease);
                if (next < to && !failure) acquire(next++);
            });
        };
        while (next < std::min(to, from + at_once))
            acquire(next++);
        if (!run_until(loop_, Clock::now() + cap, [&] { return under_way == 0; }))
            throw SelfCheck("c6: not all were granted in time");
        check(failure, "c6: acquire");
        locks_.clear();
    }

    /// Lets `n` wait for a name that somebody else holds.
    void wait(std::size_t n) {
        lock_ = Bench::lock(client_, deployment_, "bench/c6", {.ttl = ttl});
        while (waiters_.size() < n) {
            for (std::size_t i = 0; i < at_once && waiters_.size() < n; ++i)
                lock_->async_acquire(
                    {}, asio::bind_cancellation_slot(waiters_.emplace_back().slot(),
                                                     [this](error_code ec, const Lease& lease) {
                                                         if (lease.valid()) ++granted_;
                                                         if (ec != errc::cancelled) why_ = ec;
                                                         ++ended_;
                                                     }));
            // No handler of theirs runs when they have asked.
            lab::wait_until(
                [&] {
                    loop_.restart();
                    loop_.poll();
                    still_wait();
                    return client_.stats().attempts >= waiters_.size();
                },
                cap, "all waiters have asked");
        }
    }
    void stop_waiting() {
        still_wait();
        for (auto& stop : waiters_)
            stop.emit(asio::cancellation_type::terminal);
        if (!run_until(loop_, Clock::now() + cap, [&] { return ended_ == waiters_.size(); }))
            throw SelfCheck("c6: waiters did not end when cancelled");
        if (granted_ != 0) throw SelfCheck("c6: two holders");
    }
    void still_wait() const {
        if (ended_ != 0) throw SelfCheck("c6: a waiter's call ended: " + why_.message());
    }
    void still_hold() const {
        for (const Lease& lease : leases_)
            if (!lease.valid()) throw SelfCheck("c6: a lease was lost");
    }
    void idle(double seconds) {
        run_until(loop_, Clock::now() + in_seconds(seconds), [] { return false; });
    }
    std::uint64_t requests() const { return client_.stats().requests; }
    std::size_t repeated() const { return repeated_; }

private:
    const Deployment& deployment_;
    Wants wants_;
    asio::io_context loop_;
    Client client_;
    std::vector<std::unique_ptr<Lock>> locks_;
    std::vector<Lease> leases_;
    std::unique_ptr<Lock> lock_;
    std::deque<asio::cancellation_signal> waiters_;
    std::size_t ended_ = 0, granted_ = 0, repeated_ = 0;
    error_code why_;
};

Row row_of(const Deployment& d, std::size_t n) {
    Row row = bench::row_of(id, d, static_cast<double>(n));
    row.n = n;
    return row;
}

/// `one`: when one of them was there, and with it what a client has but once.
void report_memory(Bench& bench, Row row, const std::string& each, const Use& one, const Use& all,
                   std::size_t threads) {
    row.metric = "memory per " + each;
    row.unit = "bytes";
    row.note = "given out by malloc";
    bench.add_value(row, (all.heap - one.heap) / row.x);
    row.metric = "resident memory per " + each;
    row.note = "as the kernel counts it; what was free before is not in it";
    bench.add_value(row, (all.resident - one.resident) / row.x);
    row.metric = "threads: " + each + "s";
    row.unit = "";
    row.note = "of the client, whatever their number";
    bench.add_value(row, static_cast<double>(threads));
}

/// What they cost while nothing happens but renewals and looks.
void report_idling(Bench& bench, Row row, const std::string& each, Many& many) {
    const auto requests = many.requests();
    const Use before = Use::now();
    // Renewals come at a third of the ttl.
    many.idle(bench.options.pick(3.5, 3.5, 10.0));
    const Use after = Use::now();
    const double seconds = std::chrono::duration<double>(after.at - before.at).count();
    row.metric = "CPU: " + each + "s";
    row.unit = "%";
    row.note = fmt::format("of one core, this process, over {:.1f} s; ttl {} s", seconds,
                           ttl.count() / 1000);
    bench.add_value(row, (after.cpu_ms - before.cpu_ms) / seconds / 10);
    row.metric = "requests per " + each + " and second";
    row.unit = "1/s";
    bench.add_value(row, static_cast<double>(many.requests() - requests) / row.x / seconds);
}

void run_held(Bench& bench, const Deployment& d, std::size_t n, const Wants& wants,
              const std::string& each) {
    const Use none = Use::now();
    Many many(d, wants);
    many.hold(0, 1);
    const Use one = Use::now();
    many.hold(1, n + 1);
    many.still_hold();
    const Use all = Use::now();
    report_memory(bench, row_of(d, n), each, one, all, all.threads - none.threads);
    report_idling(bench, row_of(d, n), each, many);
    many.still_hold();
    if (many.repeated() == 0) return;
    Row row = row_of(d, n);
    row.metric = "acquisitions without an answer: " + each + "s";
    row.note = "asked for again";
    bench.add_value(std::move(row), static_cast<double>(many.repeated()));
}

void run_waiting(Bench& bench, const Deployment& d, std::size_t n) {
    const Client other = bench.open(d);
    const auto lock = bench.lock(other, d, "bench/c6", {.ttl = ttl});
    auto held = lock->acquire();
    if (!held) check(held.error(), "c6: acquire");
    const Use none = Use::now();
    Many many(d);
    many.wait(1);
    const Use one = Use::now();
    many.wait(n + 1);
    many.still_wait();
    const Use all = Use::now();
    report_memory(bench, row_of(d, n), "waiter", one, all, all.threads - none.threads);
    report_idling(bench, row_of(d, n), "waiter", many);
    many.stop_waiting();
}

/// What a program has that gives each waiter a thread.
void run_threads(Bench& bench) {
    constexpr std::size_t n = 1000;
    std::mutex mutex;
    std::condition_variable_any ended, begun;
    std::size_t there = 0;
    const Use before = Use::now();
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < n; ++i)
        threads.emplace_back([&](const std::stop_token& stop) {
            std::unique_lock hold(mutex);
            ++there;
            begun.notify_one();
            ended.wait(hold, stop, [] { return false; });
        });
    {
        std::unique_lock hold(mutex);
        begun.wait(hold, [&] { return there == n; });
    }
    const Use after = Use::now();
    Row row;
    row.scenario = id;
    row.backend = "memory";
    row.variant = "doc: a blocked thread each";
    row.x = static_cast<double>(n);
    row.n = n;
    row.metric = "resident memory per waiter";
    row.unit = "bytes";
    row.note =
        "threads that wait for a condition; the kernel's own stacks, 16 KiB each, come on top";
    bench.add_value(row, (after.resident - before.resident) / static_cast<double>(n));
    row.metric = "threads: waiters";
    row.unit = "";
    bench.add_value(row, static_cast<double>(after.threads - before.threads));
}

std::vector<Step> plan(const Options& options, const Site& site) {
    const auto n = options.pick<std::size_t>(1000, 10'000, 10'000);
    std::vector<Step> steps;
    for (const Deployment& d : site.deployments()) {
        // Every backend with --full; else those whose figures are targets, and the one of none.
        const bool always =
            d.backend == "redis" || d.backend == "postgresql" || d.backend == "mysql";
        if (d.variant != "default" || (options.effort != Effort::full && !always)) continue;
        steps.push_back({fmt::format("{} {} leases", d.label(), n),
                         [d, n](Bench& bench) { run_held(bench, d, n, a_mutex, "lease"); }});
        if (d.backend == "redis") {
            steps.push_back({fmt::format("{} {} readers", d.label(), n),
                             [d, n](Bench& bench) { run_held(bench, d, n, to_read, "reader"); }});
            steps.push_back({fmt::format("{} {} permits", d.label(), n),
                             [d, n](Bench& bench) { run_held(bench, d, n, a_permit, "permit"); }});
        }
        steps.push_back({fmt::format("{} {} waiters", d.label(), n),
                         [d, n](Bench& bench) { run_waiting(bench, d, n); }});
    }
    if (!steps.empty()) steps.push_back({"1000 blocked threads", run_threads});
    return steps;
}

}  // namespace

Scenario c6_scale() {
    return {id, "memory, threads and processor time of 10,000 leases and 10,000 waiters",
            "One client holds so many names, then another lets so many wait for one name that is "
            "held; what malloc has given out, the threads, and this process' time on the processor "
            "while nothing happens but renewals (1000 with --quick; all backends with --full).",
            false, plan};
}

}  // namespace holdfast::bench
