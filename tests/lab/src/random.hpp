// Random numbers that are the same for a seed on every machine and with every standard library.
#pragma once

#include <cstdint>
#include <random>

namespace holdfast::lab::detail {

/// Thread safety: one thread at a time.
class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    /// A number from 0 to `bound` - 1; `bound` is at least 1. The slight bias of the remainder does
    /// not matter for faults.
    std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }

private:
    std::mt19937_64 engine_;
};

}  // namespace holdfast::lab::detail
