// How long something took, over many times: counts in fixed buckets, so that those of many clients
// can be added up before a quantile is taken.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast {

/// A plain value; every Histogram has the same buckets.
struct Histogram {
    /// What a bucket holds at most, inclusive: 100 us, 300 us, 1 ms, 3 ms, ... 10,000 s.
    static constexpr auto bounds = [] {
        std::array<std::chrono::microseconds, 17> all{};
        std::chrono::microseconds decade{100};
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i] = i % 2 == 0 ? decade : 3 * decade;
            if (i % 2 == 1) decade *= 10;
        }
        return all;
    }();

    /// How many took longer than the bound before and at most the bound at that index; the last
    /// one has no bound.
    std::array<std::uint64_t, bounds.size() + 1> buckets{};
    std::chrono::nanoseconds sum{0};  ///< of all times

    /// How many there were.
    constexpr std::uint64_t count() const noexcept {
        std::uint64_t all = 0;
        for (const std::uint64_t n : buckets)
            all += n;
        return all;
    }
};

}  // namespace holdfast
