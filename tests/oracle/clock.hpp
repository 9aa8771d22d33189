// The clocks of this process, and through the lab's shim those of its servers: they can be moved
// ahead, so that leases end without waiting.
#pragma once
#include <memory>
#include <vector>

#include "holdfast/clock.hpp"
#include "holdfast/lab/wall_clock.hpp"

namespace oracle {

/// Moves all clocks ahead.
void pass(holdfast::milliseconds, const std::vector<std::unique_ptr<holdfast::lab::WallClock>>&);

}  // namespace oracle
