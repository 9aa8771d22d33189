// How long this machine lets a thread wait that has something to do: what a promise to tell "in
// time" cannot answer for, measured while it is checked, and never carried over to the next check.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace test_support {

/// One thread of the program, from before the first test, that sleeps 5 ms at a time and writes
/// down how late it was woken.
class StallLog {
public:
    using clock = std::chrono::steady_clock;
    using milliseconds = std::chrono::milliseconds;

    static StallLog& instance() {
        static StallLog log;
        return log;
    }
    StallLog() = default;
    StallLog(const StallLog&) = delete;
    StallLog& operator=(const StallLog&) = delete;

    /// The longest stall that ended, or still lasts, at `start` or later.
    milliseconds longest_since(clock::time_point start) {
        const std::lock_guard hold_it(mutex_);
        // What was over before counts for nothing, though it is written down only now.
        const auto from = [&](clock::time_point began, clock::time_point end) {
            return std::chrono::floor<milliseconds>(end - std::max(began, start));
        };
        milliseconds most = std::max(from(due_, clock::now()), milliseconds(0));
        for (const Stall& s : stalls_)
            if (s.end >= start) most = std::max(most, from(s.end - s.late, s.end));
        return most;
    }

private:
    struct Stall {
        clock::time_point end;
        milliseconds late;
    };
    void watch(const std::stop_token& stop) {
        std::condition_variable_any never;
        std::unique_lock hold(mutex_);
        while (!stop.stop_requested()) {
            const auto end = clock::now();
            const auto late = std::chrono::floor<milliseconds>(end - due_);
            // Only one that is longer than all after it can be the longest since any moment.
            while (!stalls_.empty() && stalls_.back().late <= late)
                stalls_.pop_back();
            stalls_.push_back({end, late});
            due_ = end + milliseconds(5);
            never.wait_until(hold, stop, due_, [] { return false; });
        }
    }

    std::mutex mutex_;
    clock::time_point due_ = clock::now();
    std::deque<Stall> stalls_;  ///< ever shorter, so few
    std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};
inline StallLog& stall_log = StallLog::instance();

/// From its making on. Any thread may ask.
class Stalls {
public:
    /// The longest so far, in ms.
    long long longest() const { return stall_log.longest_since(start_).count(); }

private:
    StallLog::clock::time_point start_ = StallLog::clock::now();
};

}  // namespace test_support
