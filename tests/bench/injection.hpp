// Puts trouble into histories that have none, and sees whether the checker finds it.
#pragma once
#include <functional>

#include "histories.hpp"

namespace histories {

/// Of this run; printed once. HOLDFAST_TEST_SEED gives it.
std::uint64_t seed();
/// How often a random test does something: HOLDFAST_TEST_HISTORIES, or what is usual.
int times(int usual);

inline std::vector<Record>& stores(World& world) {
    return world.logs.back().records;
}
/// Some record that the condition takes, or null.
Record* some(Random&, std::vector<Record>&, const std::function<bool(const Record&)>& is);
/// At a random place after the names and before the end in order. A process that was killed at once
/// has names only.
void insert(Random&, std::vector<Record>&, const Record&);

/// Puts one trouble into a world; false when this world has no place for it.
using Injection = std::function<bool(World&, Random&)>;

/// Requires that the trouble is in none of many correct histories, and is found in each of them
/// once it was put there.
void find_always(history::Trouble, const Shape&, const Injection&, const history::Limits& = {});

}  // namespace histories
