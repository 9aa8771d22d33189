// How long this machine lets a thread wait that has something to do: what a promise to tell "in
// time" cannot answer for, measured while it is checked.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace test_support {

/// Watches from its making to its end. Any thread may ask.
class Stalls {
public:
    /// The longest so far, in ms.
    long long longest() const noexcept { return longest_; }
    /// For a word that passes through two threads, one after the other.
    long long of_two() const noexcept { return 2 * longest_; }

private:
    void watch(const std::stop_token& stop) {
        using clock = std::chrono::steady_clock;
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock hold(mutex);
        while (!stop.stop_requested()) {
            const auto due = clock::now() + std::chrono::milliseconds(5);
            never.wait_until(hold, stop, due, [] { return false; });
            const auto late = std::chrono::floor<std::chrono::milliseconds>(clock::now() - due);
            longest_ = std::max<long long>(longest_, late.count());
        }
    }

    std::atomic<long long> longest_{0};
    std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

/// From before the first test.
inline const Stalls since_the_start;

/// What a bound on time leaves to this machine: twice the longest that it has stood still.
inline std::chrono::milliseconds stood_still() {
    return std::chrono::milliseconds(since_the_start.of_two());
}

/// Asks again, a few times, while the answer is not one to judge by and this machine has stood
/// still for about as long as the question was given: what it leaves unanswered for too long is in
/// doubt, rightly.
template <class Ask, class Unwanted>
auto ask_in_peace(Ask ask, Unwanted unwanted,
                  std::chrono::milliseconds given = std::chrono::seconds(1)) {
    auto answer = ask();
    for (int left = 3; left > 0 && unwanted(answer); --left) {
        if (stood_still() < given) break;
        answer = ask();
    }
    return answer;
}

}  // namespace test_support
