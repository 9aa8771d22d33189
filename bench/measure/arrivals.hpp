// When callers come who do not wait for each other: at a fixed rate, at random.
#pragma once
#include <random>

#include "measure/latency.hpp"

namespace holdfast::bench {

/// A Poisson process: the gaps between two arrivals are exponential and depend on nothing.
class Arrivals {
public:
    /// `seed`: the same seed gives the same times after `start`.
    Arrivals(double per_second, Clock::time_point start, std::uint64_t seed)
        : gap_(per_second), random_(seed), start_(start) {
        advance();
    }
    Clock::time_point next() const { return start_ + in_seconds(at_); }
    void advance() { at_ += gap_(random_); }

private:
    std::exponential_distribution<double> gap_;
    std::mt19937_64 random_;
    Clock::time_point start_;
    double at_ = 0;  ///< seconds: sums of rounded durations would drift
};

}  // namespace holdfast::bench
