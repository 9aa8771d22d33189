// Curator's mutex that is not re-entrant: a semaphore of one lease. A line of nodes admits one
// client after the other to the leases; a client that finds no other lease holds the lock.
#pragma once
#include <memory>
#include <string>

#include "variants/recipe.hpp"

namespace holdfast::bench {

struct SemaphoreHow {
    std::string servers;
    milliseconds session{};
    milliseconds pause{};  ///< before a waiter looks again, where Curator's waits for a watch
};

/// The first attempt connects.
std::unique_ptr<Recipe> make_semaphore_recipe(const SemaphoreHow&);

}  // namespace holdfast::bench
