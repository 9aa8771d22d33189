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

/// "redis", "redis poll": the variant where it is not the default one.
inline std::string label(const Row& row) {
    return row.variant == "default" ? row.backend : row.backend + " " + row.variant;
}

/// Claims about what a client does wrong by itself: verdict_clients.cpp.
std::span<const Rule> rules_of_clients();

}  // namespace holdfast::bench
