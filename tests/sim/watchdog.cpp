#include "watchdog.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>

namespace holdfast::sim {
namespace {

constexpr std::chrono::milliseconds look{100};
constexpr double most = 5;  // seconds of the processor
constexpr int most_looks = 600;

}  // namespace

void Watchdog::begin() {
    ::pthread_getcpuclockid(::pthread_self(), &clock_);
    begun_.store(true, std::memory_order_release);
}

void Watchdog::watch(const std::function<bool(std::chrono::milliseconds)>& ended, bool expected) {
    std::uint64_t seen = 0;
    double from = 0;
    int looks = 0;
    while (!ended(look)) {
        if (!begun_.load(std::memory_order_acquire)) continue;
        const std::uint64_t now = steps.load(std::memory_order_relaxed);
        if (now != seen || looks == 0) seen = now, from = burnt(), looks = 0;
        ++looks;
        if (burnt() - from > most) stop("one step takes more than 5 s of the processor", expected);
        if (looks > most_looks) stop("no step in a minute", expected);
    }
}

double Watchdog::burnt() const {
    timespec t{};
    ::clock_gettime(clock_, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void Watchdog::stop(const char* why, bool expected) const {
    std::printf("seed %llu: it does not come to rest: %s\n", static_cast<unsigned long long>(seed_),
                why);
    std::fflush(stdout);
    std::_Exit(expected ? 0 : 1);
}

}  // namespace holdfast::sim
