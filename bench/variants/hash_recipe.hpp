// Redisson's lock: a hash whose field is the owner and whose value counts how often he entered,
// changed by a script.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "variants/recipe.hpp"

namespace holdfast::bench {

struct HashHow {
    std::uint16_t port = 0;
    std::string identity;  ///< of client and thread; empty: each acquisition its own
    milliseconds pause{};  ///< before a waiter looks again; Redisson subscribes besides
};

/// Connects, and loads the scripts. Errors: SelfCheck.
std::unique_ptr<Recipe> make_hash_recipe(const HashHow&);

}  // namespace holdfast::bench
