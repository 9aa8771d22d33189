// One `holdfast run`, from the guardian's start to the release.
#pragma once
#include <string_view>

#include "globals.hpp"
#include "run_options.hpp"

namespace holdfast::cli {

struct RunEnd {
    int exit = 0;
    int interrupted = 0;  ///< SIGINT or SIGQUIT: what die_of() takes
    bool job = false;
};

/// `consequence` ends every message about a lock that was not acquired.
RunEnd run_session(const RunOptions&, const Timing&, const ResolvedBackend&, const Globals&,
                   std::string_view consequence);

}  // namespace holdfast::cli
