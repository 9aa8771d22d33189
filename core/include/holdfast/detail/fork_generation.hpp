// Detects a forked child, in which every handle is dead: its sockets and threads belong to the
// parent.
#pragma once
#include <cstdint>

#include "holdfast/export.hpp"

namespace holdfast {

/// Grows in a child that has a copy of its parent's memory, made by fork() or by a bare clone(2).
/// Compare it with the value at construction. Any thread; no system call.
HOLDFAST_EXPORT std::uint64_t fork_generation() noexcept;

}  // namespace holdfast
