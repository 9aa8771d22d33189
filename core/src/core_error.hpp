// Core's own codes beside errc.
#pragma once
#include "holdfast/error.hpp"

namespace holdfast {

/// The lease reached LockOptions::max_hold; its condition is errc::lost.
error_code max_hold_error() noexcept;

}  // namespace holdfast
