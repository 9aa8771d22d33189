// What a lock lets in: one holder, one writer or many readers, or holders of so many permits. One
// rule stands behind all of them: an acquisition is granted when the units of the live holders and
// its own are within the limit of the name, and no waiter came before it.
#pragma once
#include <cstdint>
#include <string_view>

#include "holdfast/export.hpp"

namespace holdfast {

/// A mutex and a shared_mutex of one name exclude each other: a mutex is a shared_mutex that is
/// only asked for exclusively. A semaphore excludes both, with `kind_mismatch`.
enum class Kind : std::uint8_t {
    mutex,         ///< one holder
    shared_mutex,  ///< one exclusive holder, or any number of shared ones
    semaphore      ///< holders of at most LockOptions::limit permits together
};

/// How a shared_mutex is asked for.
enum class Mode : std::uint8_t { exclusive, shared };

/// "mutex", "shared_mutex", "semaphore"; "exclusive", "shared".
HOLDFAST_EXPORT std::string_view to_string(Kind) noexcept;
HOLDFAST_EXPORT std::string_view to_string(Mode) noexcept;

}  // namespace holdfast
