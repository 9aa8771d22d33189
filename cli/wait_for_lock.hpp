// The wait of `run`: interruptible at once, and telling a person what it waits for.
#pragma once
#include <optional>
#include <string>

#include "guardian.hpp"
#include "holdfast/client.hpp"
#include "signals.hpp"
#include "status_fd.hpp"

namespace holdfast::cli {

struct WaitResult {
    result<Lease> lease = error_code{};
    Diagnostics diagnostics;
    // What ended the wait; a lease that came at that moment is in `lease` all the same.
    int signal = 0;
    bool guardian_died = false;
};

WaitResult wait_for_lock(const Client&, Lock&, milliseconds wait, const std::string& label,
                         Signals&, const Guardian&, StatusFd&);

}  // namespace holdfast::cli
