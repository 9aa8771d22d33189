// Callers of an open loop come at the rate that was asked for, at random, and by the seed.
#include <cmath>
#include "catch.hpp"

#include "measure/arrivals.hpp"

using namespace holdfast::bench;

namespace {

/// Seconds after the start at which the first callers come.
std::vector<double> first(std::size_t callers, double per_second, std::uint64_t seed) {
    const Clock::time_point start{};
    Arrivals arrivals(per_second, start, seed);
    std::vector<double> all;
    for (std::size_t i = 0; i < callers; ++i, arrivals.advance())
        all.push_back(std::chrono::duration<double>(arrivals.next() - start).count());
    return all;
}

}  // namespace

TEST_CASE("callers come at the rate that was asked for") {
    for (const double rate : {100.0, 50'000.0}) {
        const auto all = first(20'000, rate, 7);
        CHECK(all.back() == Approx(20'000 / rate).epsilon(0.03));
        CHECK(std::is_sorted(all.begin(), all.end()));
        CHECK(all.front() > 0);
    }
}

TEST_CASE("callers come at random: the gaps of a Poisson process vary as much as they are long") {
    const auto all = first(20'000, 1000, 7);
    Latency gaps;
    for (std::size_t i = 1; i < all.size(); ++i)
        gaps.add_us(1e6 * (all[i] - all[i - 1]));
    CHECK(gaps.mean_us() == Approx(1000).epsilon(0.03));
    CHECK(gaps.quantile_us(0.5) == Approx(1000 * std::log(2)).epsilon(0.05));
    CHECK(gaps.quantile_us(0.99) == Approx(1000 * std::log(100)).epsilon(0.1));
}

TEST_CASE("the seed says when") {
    CHECK(first(100, 1000, 7) == first(100, 1000, 7));
    CHECK(first(100, 1000, 7) != first(100, 1000, 8));
}
