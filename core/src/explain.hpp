// Errors of core's own beside errc, and the text of any error: what happened, at which server, and
// what to do about it.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/spi/config.hpp"

namespace holdfast {

/// Adds one entry. `detail` is the backend's text; it may be empty, and must not hold a secret.
void explain(Diagnostics&, const ResolvedBackend&, const error_code&, std::string_view detail);

/// A server that refuses for this reason refuses again: a retry does not help.
bool is_permanent(const error_code&) noexcept;

/// Reasons of a loss, all with the condition errc::lost. This one: the validity ended without a
/// renewal.
error_code expired_error() noexcept;
/// The lease reached LockOptions::max_hold.
error_code max_hold_error() noexcept;
/// The server answered that it no longer has the lease.
error_code gone_error() noexcept;

}  // namespace holdfast
