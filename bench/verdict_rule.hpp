// What a verdict is made of; the rules are written where their claims belong together.
#pragma once
#include <span>
#include <string>

#include "verdict.hpp"

namespace holdfast::bench {

struct Answer {
    Finding finding = Finding::not_measured;
    std::string figure;
};

struct Rule {
    const char* id;
    const char* claim;
    const char* rule;
    Answer (*judge)(const Rows&);
};

/// What is said of runs is confirmed by so many of each set-up, and not by fewer.
inline constexpr std::uint64_t enough_runs = 10;
/// Shown in at least nine of ten runs, however few there were.
bool caught(const Row&);

/// "redis", "redis plain": the variant where it is not the default one.
std::string label(const Row&);

/// Claims about what locks cost where nothing fails: verdict_cost.cpp.
std::span<const Rule> rules_of_cost();
/// Claims about what a client does wrong by itself: verdict_clients.cpp.
std::span<const Rule> rules_of_clients();
/// Claims about faults of servers, and about what Redlock and each backend cost:
/// verdict_faults.cpp.
std::span<const Rule> rules_of_faults();

}  // namespace holdfast::bench
