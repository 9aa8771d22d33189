// Distribution of durations, as counts in fixed buckets: the counts of many clients can be added
// before a quantile is computed.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast {

/// A plain value. Every Histogram has the same buckets.
struct Histogram {
    /// Upper bounds of the buckets, inclusive: 100 us, 300 us, 1 ms, 3 ms, ... 10,000 s.
    static constexpr auto bounds = [] {
        std::array<std::chrono::microseconds, 17> all{};
        std::chrono::microseconds decade{100};
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i] = i % 2 == 0 ? decade : 3 * decade;
            if (i % 2 == 1) decade *= 10;
        }
        return all;
    }();

    /// Bucket i counts durations above bound i-1 and up to bound i. The last bucket has no bound.
    std::array<std::uint64_t, bounds.size() + 1> buckets{};
    std::chrono::nanoseconds sum{0};  ///< of all durations

    /// Number of durations.
    constexpr std::uint64_t count() const noexcept {
        std::uint64_t all = 0;
        for (const std::uint64_t n : buckets)
            all += n;
        return all;
    }
};

}  // namespace holdfast
