// The wait of `run`: interruptible at once, and telling a person what it waits for.
#pragma once
#include <memory>
#include <vector>

#include "guardian.hpp"
#include "holdfast/acquire_all.hpp"
#include "holdfast/client.hpp"
#include "run_options.hpp"
#include "signals.hpp"
#include "status_fd.hpp"

namespace holdfast::cli {

struct WaitResult {
    result<LeaseSet> set = error_code{};
    Diagnostics diagnostics;
    std::size_t failed = 0;  ///< on error: which of the names was not acquired
    // What ended the wait; what came at that moment is in `set` all the same.
    int signal = 0;
    bool guardian_died = false;
};

/// What it gives is valid for `least` from then on, or the server did not answer a renewal.
WaitResult wait_for_locks(const Client&, const std::vector<std::unique_ptr<Lock>>&,
                          const RunOptions&, milliseconds least, Signals&, const Guardian&,
                          StatusFd&);

}  // namespace holdfast::cli
