// The one retry policy: a random delay between a quarter of a bound and the bound, which doubles.
#pragma once
#include <algorithm>
#include <random>

#include "holdfast/clock.hpp"

namespace holdfast {

/// Not thread-safe. With `eager`, the first delay after construction or reset() is zero, since the
/// commonest fault is a single broken connection.
class Backoff {
public:
    Backoff(milliseconds first, milliseconds last, bool eager) noexcept
        : first_(first), last_(last), eager_(eager) {}

    milliseconds next() {
        if (eager_ && tries_ == 0) {
            ++tries_;
            return milliseconds::zero();
        }
        const unsigned doublings = std::min(tries_++, 16U);
        const auto bound = std::min<long long>(last_.count(), first_.count() << doublings);
        return milliseconds(std::uniform_int_distribution<long long>(bound / 4, bound)(random()));
    }
    void reset() noexcept { tries_ = 0; }

private:
    static std::minstd_rand& random() {
        static thread_local std::minstd_rand engine{std::random_device{}()};
        return engine;
    }
    milliseconds first_, last_;
    bool eager_;
    unsigned tries_ = 0;
};

}  // namespace holdfast
