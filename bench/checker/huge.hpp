// Room for very many entries. A history has millions, and each page of 4 KiB that is touched for
// the first time costs a fault: in a virtual machine more than all that is done with its entries.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <vector>

namespace holdfast::bench::history {

/// Reserves, in huge pages where the system has them and the room is worth it. It never fails for
/// want of those.
template <class T>
void reserve_huge(std::vector<T>& v, std::size_t entries) {
    constexpr std::uintptr_t huge = 2U << 20U;
    v.reserve(entries);
    const auto at = reinterpret_cast<std::uintptr_t>(v.data());
    const std::uintptr_t from = (at + huge - 1) / huge * huge;
    const std::uintptr_t to = (at + v.capacity() * sizeof(T)) / huge * huge;
    if (to > from) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
}

}  // namespace holdfast::bench::history
