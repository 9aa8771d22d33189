#include "worker.hpp"

#include <fmt/format.h>
#include <fmt/os.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/use_future.hpp>
#include <deque>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "checker/diary.hpp"

namespace holdfast::soak {

namespace {

using namespace std::chrono_literals;
using Random = std::mt19937_64;

std::atomic<bool> ending{false};

/// When this process was not run: what a bound on time cannot be held against.
class Stalls {
public:
    /// How much of [from, now) was stalls of 50 ms or more.
    milliseconds since(boot_clock::time_point from) {
        const std::lock_guard hold(mutex_);
        auto sum = std::chrono::nanoseconds::zero();
        for (const auto& [begin, end] : seen_)
            if (end > from) sum += end - std::max(begin, from);
        // The one that has just ended may be this thread's to see first.
        const auto now = boot_clock::now();
        if (now - last_ >= 50ms) sum += now - std::max(last_, from);
        return std::chrono::ceil<milliseconds>(sum);
    }

private:
    void watch(const std::stop_token& stop) {
        (void)lab::reached(
            [&] {
                const auto now = boot_clock::now();
                const std::lock_guard hold(mutex_);
                if (now - last_ >= 50ms) {
                    seen_.emplace_back(last_, now);
                    if (seen_.size() > 1000) seen_.pop_front();
                }
                last_ = now;
                return stop.stop_requested();
            },
            24h);
    }
    std::mutex mutex_;
    boot_clock::time_point last_ = boot_clock::now();
    std::deque<std::pair<boot_clock::time_point, boot_clock::time_point>> seen_;
    std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

/// Ends waits of other threads at their time.
class Cancellations {
public:
    void add(boot_clock::time_point at, std::stop_source source) {
        const std::lock_guard hold(mutex_);
        due_.emplace(at, std::move(source));
    }

private:
    void serve(const std::stop_token& stop) {
        (void)lab::reached(
            [&] {
                std::vector<std::stop_source> now;
                {
                    const std::lock_guard hold(mutex_);
                    while (!due_.empty() && due_.begin()->first <= boot_clock::now())
                        now.push_back(due_.extract(due_.begin()).mapped());
                }
                for (auto& source : now)
                    source.request_stop();
                return stop.stop_requested();
            },
            24h);
    }
    std::mutex mutex_;
    std::multimap<boot_clock::time_point, std::stop_source> due_;
    std::jthread thread_{[this](const std::stop_token& stop) { serve(stop); }};
};

struct Summary {
    std::atomic<std::uint64_t> granted{0}, contended{0}, cancelled{0}, failed{0}, in_doubt{0},
        lost{0}, late{0}, stalled{0};
    std::atomic<std::int64_t> latest_ms{0};  ///< the longest call beyond its bound, stalls left out
};

class Caller {
public:
    Caller(const Client& client, const WorkerOptions& options, int number, Stalls& stalls,
           Cancellations& cancellations, Summary& summary)
        : client_(client),
          options_(options),
          number_(number),
          stalls_(stalls),
          cancellations_(cancellations),
          summary_(summary),
          random_(options.seed * 1000 + static_cast<unsigned>(number)),
          diary_(options.folder / fmt::format("{}-{}.history", ::getpid(), number),
                 fmt::format("soak-{}", number)) {}

    void run() {
        while (!ending)
            once();
    }

private:
    bool chance(int percent) { return std::uniform_int_distribution(0, 99)(random_) < percent; }
    milliseconds pick(long from, long to) {
        return milliseconds(std::uniform_int_distribution<long>(from, to)(random_));
    }

    std::string name() {
        if (options_.long_holds) return fmt::format("soak/control-{}", pick(0, 1).count());
        if (chance(40)) return fmt::format("soak/hot-{}", pick(0, 7).count());
        return fmt::format("soak/cold-{}-{}-{}", ::getpid(), number_, pick(0, 199).count());
    }

    milliseconds hold_time() {
        if (options_.long_holds) return pick(6000, 9000);  // until the servers are back, empty
        const auto kind = pick(0, 999).count();
        if (kind < 2) return pick(3000, 6000);  // beyond a ttl: only renewals keep it
        if (kind < 10) return pick(100, 1500);
        if (kind < 200) return pick(1, 5);
        return 0ms;
    }

    result<Lease> acquire(Lock& lock, milliseconds wait) {
        if (wait > 0ms && chance(10)) {
            std::stop_source stop;
            cancellations_.add(boot_clock::now() + pick(0, 300), stop);
            return lock.acquire({.wait = wait}, stop.get_token());
        }
        if (!chance(15)) return lock.acquire({.wait = wait});
        try {
            return lock.async_acquire({.wait = wait}, asio::use_future).get();
        } catch (const boost::system::system_error& error) {
            return error.code();
        }
    }

    void once() {
        const auto text = name();
        LockOptions how;
        if (options_.long_holds) how.ttl = 10s;
        const auto lock = client_.make_lock(text, how).value();
        const auto in_diary = diary_.name(text, &lock->capabilities());
        const auto wait = chance(15) ? 0ms : options_.long_holds ? 20s : pick(50, 4000);
        auto entry = diary_.asked(in_diary);
        const auto asked = boot_clock::now();
        auto lease = acquire(*lock, wait);
        judge(asked, wait, lease ? "acquire: granted" : "acquire: " + lease.error().message());
        if (!lease) {
            diary_.failed(entry, lease.error());
            return count(lease.error());
        }
        ++summary_.granted;
        diary_.granted(entry, *lease);
        const auto until = boot_clock::now() + hold_time();
        (void)lab::reached(
            [&] {
                diary_.believes(entry, *lease);
                return ending || !lease->valid() || boot_clock::now() >= until;
            },
            20s);
        if (!lease->valid()) {
            ++summary_.lost;
            return diary_.lost(entry, *lease);
        }
        const auto outcome = chance(5) ? Outcome::abandoned : Outcome::done;
        diary_.releasing(entry, *lease, outcome);
        const auto released = boot_clock::now();
        const auto answer = lease->release(outcome);
        judge(released, 1000ms, fmt::format("release: {}", to_string(answer)));
        diary_.released(entry, answer);
    }

    /// Every call ends at its bound; a second is left to threads that wait for the processor.
    void judge(boot_clock::time_point asked, milliseconds bound, const std::string& what) {
        // One attempt is bounded by the request time-out, and by as much again to withdraw it.
        const auto most = std::max(bound, 2000ms) + 1000ms;
        const auto took = std::chrono::ceil<milliseconds>(boot_clock::now() - asked);
        if (took <= most) return;
        const auto stood_still = stalls_.since(asked);
        // So long a stall says nothing about the call.
        if (stood_still > most) return void(++summary_.stalled);
        const auto late = took - most - stood_still;
        if (late <= 0ms) return;
        ++summary_.late;
        std::cerr << fmt::format("late by {} ms: {}, bound {} ms, took {} ms\n", late.count(), what,
                                 bound.count(), took.count());
        auto before = summary_.latest_ms.load();
        while (before < late.count() &&
               !summary_.latest_ms.compare_exchange_weak(before, late.count())) {
        }
    }

    void count(error_code ec) {
        if (ec == errc::contended || ec == errc::timed_out)
            ++summary_.contended;
        else if (ec == errc::cancelled)
            ++summary_.cancelled;
        else if (ec == errc::in_doubt)
            ++summary_.in_doubt;
        else
            ++summary_.failed;
    }

    const Client& client_;
    const WorkerOptions& options_;
    const int number_;
    Stalls& stalls_;
    Cancellations& cancellations_;
    Summary& summary_;
    Random random_;
    bench::Diary diary_;
};

}  // namespace

int work(const WorkerOptions& options) {
    ::signal(SIGTERM, [](int) { ending = true; });
    Summary summary;
    {
        Diagnostics words;
        ClientOptions how;
        how.diagnostics = &words;
        const auto client = Client::open(options.url, how);
        if (!client) {
            std::cerr << words.text() << '\n';
            return 1;
        }
        Stalls stalls;
        Cancellations cancellations;
        std::deque<Caller> callers;
        for (int i = 0; i < options.threads; ++i)
            callers.emplace_back(*client, options, i, stalls, cancellations, summary);
        std::vector<std::jthread> threads;
        for (auto& caller : callers)
            threads.emplace_back([&caller] { caller.run(); });
    }
    auto out = fmt::output_file((options.folder / fmt::format("{}.summary", ::getpid())).string());
    out.print(
        "granted {}\ncontended {}\ncancelled {}\nfailed {}\nin_doubt {}\nlost {}\nlate "
        "{}\nstalled {}\nlatest_ms {}\n",
        summary.granted.load(), summary.contended.load(), summary.cancelled.load(),
        summary.failed.load(), summary.in_doubt.load(), summary.lost.load(), summary.late.load(),
        summary.stalled.load(), summary.latest_ms.load());
    return 0;
}

}  // namespace holdfast::soak
