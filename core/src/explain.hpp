// The words of an error: what happened, at which server, what to do about it.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/config.hpp"

namespace holdfast {

/// Adds one entry. `detail` is the backend's words and may be empty; it must not hold a secret.
void explain(Diagnostics&, const Chosen&, const error_code&, std::string_view detail);

}  // namespace holdfast
