// What a verdict is made of; the rules are in verdict.cpp and, for servers' faults, in
// verdict_faults.cpp.
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

/// "redis", "redis plain".
std::string label(const Row&);

/// Claims about faults of servers, and about what Redlock and each backend cost.
std::span<const Rule> fault_rules();

}  // namespace holdfast::bench
