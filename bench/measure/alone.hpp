// One blocking caller of Holdfast's, as a contender.
#pragma once
#include "measure/rounds.hpp"
#include "measure/wants.hpp"

namespace holdfast::bench {

/// Acquire and release of one lock that nobody else wants. Opens the deployment and does a first
/// cycle, which connects, loads scripts, makes files. Errors: SelfCheck.
Contender alone(const Deployment&, const std::string& name, const Wants& = a_mutex);

}  // namespace holdfast::bench
