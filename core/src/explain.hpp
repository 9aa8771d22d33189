// Errors of core's own beside errc, and the text of any error: what happened, at which server, what
// to do about it.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/config.hpp"

namespace holdfast {

/// Adds one entry. `detail` is the backend's words and may be empty; it must not hold a secret.
void explain(Diagnostics&, const ResolvedBackend&, const error_code&, std::string_view detail);

/// The lease reached LockOptions::max_hold; its condition is errc::lost.
error_code max_hold_error() noexcept;

}  // namespace holdfast
