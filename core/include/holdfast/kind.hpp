// Kinds of locks: one holder, one writer or many readers, or holders of a number of permits. One
// rule covers them all: an acquisition is granted when its units and those of the live holders are
// within the limit of the name. With Capability::fifo, no waiter that came later is granted before
// it.
#pragma once
#include <cstdint>
#include <string_view>

#include "holdfast/export.hpp"

namespace holdfast {

/// A mutex and a shared_mutex of one name exclude each other: a mutex is a shared_mutex that is
/// only acquired exclusively. A semaphore excludes both, with `kind_mismatch`.
enum class Kind : std::uint8_t {
    mutex,         ///< one holder
    shared_mutex,  ///< one exclusive holder, or any number of shared ones
    semaphore      ///< holders of at most LockOptions::limit permits together
};

/// How a shared_mutex is acquired.
enum class Mode : std::uint8_t { exclusive, shared };

/// "mutex", "shared_mutex", "semaphore"; "exclusive", "shared".
HOLDFAST_EXPORT std::string_view to_string(Kind) noexcept;
HOLDFAST_EXPORT std::string_view to_string(Mode) noexcept;

}  // namespace holdfast
