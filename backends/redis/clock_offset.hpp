// The server's clock as seen from here: requests carry a deadline in the server's own time, so that
// one that arrives late does nothing.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "holdfast/clock.hpp"

namespace holdfast::redis {

/// Thread-safe. Taken at the receipt of an answer, so it is never more than the true difference: a
/// deadline computed with it is never later than meant.
class ClockOffset {
public:
    void sample(std::int64_t server_us, boot_clock::time_point received) noexcept {
        offset_us_.store(server_us - us(received), std::memory_order_relaxed);
    }
    std::int64_t server_us(boot_clock::time_point t) const noexcept {
        return offset_us_.load(std::memory_order_relaxed) + us(t);
    }
    std::int64_t server_ms(boot_clock::time_point t) const noexcept { return server_us(t) / 1000; }

private:
    static std::int64_t us(boot_clock::time_point t) noexcept {
        return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
    }
    std::atomic<std::int64_t> offset_us_{0};
};

}  // namespace holdfast::redis
