// Durations in constant memory, and the medians and spreads that rows report.
#pragma once
#include <algorithm>
#include <boost/histogram.hpp>
#include <chrono>
#include <cstdint>
#include <tuple>
#include <vector>

namespace holdfast::bench {

using Clock = std::chrono::steady_clock;

inline Clock::duration in_seconds(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}
inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}
inline double millis_since(Clock::time_point start) {
    return 1e3 * seconds_since(start);
}

/// A histogram of durations from 50 ns to 100 s with bins 0.5 % wide; quantiles interpolate inside
/// a bin.
class Latency {
public:
    void add(Clock::duration d) { add_us(std::chrono::duration<double, std::micro>(d).count()); }
    void add_us(double us) {
        histogram_(us);
        ++count_;
        sum_ += us;
        largest_ = std::max(largest_, us);
    }
    void merge(const Latency& other) {
        histogram_ += other.histogram_;
        count_ += other.count_;
        sum_ += other.sum_;
        largest_ = std::max(largest_, other.largest_);
    }
    std::uint64_t count() const { return count_; }
    double max_us() const { return largest_; }
    double mean_us() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
    /// The duration below which a share `q` of the samples lies, in microseconds; 0 without
    /// samples.
    double quantile_us(double q) const;

private:
    using Axis = boost::histogram::axis::regular<double, boost::histogram::axis::transform::log>;
    using Counts = boost::histogram::storage_adaptor<std::vector<std::uint32_t>>;
    boost::histogram::histogram<std::tuple<Axis>, Counts> histogram_{
        std::tuple<Axis>(Axis(4300, 0.05, 1e8))};
    std::uint64_t count_ = 0;
    double largest_ = 0, sum_ = 0;
};

/// Median, least and largest of some rounds' figures.
struct Spread {
    double median = 0, min = 0, max = 0;
};
Spread spread_of(std::vector<double> values);

/// Jain's fairness index: 1 when all got the same, 1/n when one got everything.
double jain_index(const std::vector<double>& shares);

/// Pairs of `order` that are out of order, as a share of all pairs: 0 is first come, first served.
double inversions(const std::vector<std::size_t>& order);

}  // namespace holdfast::bench
