// Nothing but acquire and release, again and again: what strace, perf and heap profilers look at.
#pragma once
#include <cstddef>
#include <string>

namespace holdfast::bench {

struct CyclesOptions {
    std::string url;
    std::size_t count = 20'000;
    std::size_t in_flight = 0;  ///< 0: one blocking caller; else so many names by callbacks
};

/// Runs them and prints what a cycle took: time, processor time of this process, switches between
/// threads. The exit code.
int cycles_main(const CyclesOptions&);

}  // namespace holdfast::bench
