// Where schedules are played: a backend with its servers, and clocks that can be moved. real.cpp
// has those with real servers, simulated.cpp those with the servers of tests/sim.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comparison.hpp"

namespace oracle {

class Stage {
public:
    virtual ~Stage() = default;
    virtual hf::Capabilities capabilities() const = 0;
    /// What may be random besides comes from the seed. Errors: Void.
    virtual std::optional<Difference> play(const std::vector<Operation>&, long seed, Tally&) = 0;
};

/// "memory|sqlite": those that this program has.
extern const char* const backends;
std::unique_ptr<Stage> make_stage(const std::string& backend);

}  // namespace oracle
