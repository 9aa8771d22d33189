// The wait of `run`: interruptible at once, and telling a person what it waits for.
#pragma once
#include <optional>
#include <string>

#include "holdfast/client.hpp"
#include "signals.hpp"
#include "status_fd.hpp"

namespace holdfast::cli {

struct WaitResult {
    result<Lease> lease = error_code{};
    Diagnostics diagnostics;
    int signal = 0;  ///< not zero: a signal ended the wait; nothing is held or queued
};

WaitResult wait_for_lock(const Client&, Lock&, milliseconds wait, const std::string& label,
                         Signals&, StatusFd&);

}  // namespace holdfast::cli
