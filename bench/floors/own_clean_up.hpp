// After a run on the user's own server nothing of it may stay there.
#pragma once
#include <cstddef>
#include <string>

#include "site.hpp"

namespace holdfast::bench {

struct CleanUp {
    std::size_t still_held = 0;  ///< locks below the prefix that are held or queued for
    std::string words;           ///< what was removed, and what stays until when
};

/// Looks for held locks below the deployment's prefix and removes the bookkeeping of released ones
/// where the server can be reached without Holdfast. Errors: SelfCheck, LabError.
CleanUp clean_up_own(const Deployment&);

}  // namespace holdfast::bench
