// After fork() every handle in the child is dead: its sockets and threads belong to the parent.
#pragma once
#include <cstdint>

namespace holdfast {

/// Grows by one in the child of every fork. Compare with the value kept at construction.
std::uint64_t fork_generation() noexcept;

}  // namespace holdfast
