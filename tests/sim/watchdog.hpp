// Ends the program, with the seed, when a run stands still: in a loop without a step, which nothing
// inside it could count, or in a wait of the system that nobody ends. A step takes microseconds.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>

namespace holdfast::sim {

class Watchdog {
public:
    explicit Watchdog(std::uint64_t seed) : seed_(seed) {}

    std::atomic<std::uint64_t> steps{0};  ///< those of the run, told by it

    /// On the run's thread.
    void begin();
    /// Until `ended`, which waits for so long. By the processor's time and by looks, so that a busy
    /// machine, or one that sleeps, ends nothing. `expected`: that the run fails.
    void watch(const std::function<bool(std::chrono::milliseconds)>& ended, bool expected);

private:
    /// Seconds of the processor that the run's thread has had.
    double burnt() const;
    void stop(const char* why, bool expected) const;

    const std::uint64_t seed_;
    clockid_t clock_{};
    std::atomic<bool> begun_{false};
};

}  // namespace holdfast::sim
