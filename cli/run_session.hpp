// One `holdfast run`, from the guardian's start to the release.
#pragma once
#include <string_view>

#include "globals.hpp"
#include "run_options.hpp"

namespace holdfast::cli {

/// Returns the exit code. `consequence` ends every message about a lock that was not taken.
int run_session(const RunOptions&, const Timing&, const Chosen&, const Globals&,
                std::string_view consequence);

}  // namespace holdfast::cli
