// Structs that begin with their own size: a caller may have been built with an older or newer
// header.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace holdfast::c {

/// The caller's mistake in a struct.
struct BadStruct : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// What the caller gave; its newer fields are ignored, and its missing ones have defaults.
template <class T>
T taken(const T* given, const T& defaults) {
    static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0);
    T t = defaults;
    if (given == nullptr) return t;
    if (given->size < sizeof t.size)
        throw BadStruct("the size of a struct is not set\n  Start with its HF_... macro.");
    std::memcpy(&t, given, std::min<std::size_t>(given->size, sizeof t));
    return t;
}

/// Writes what the caller's struct has room for; keeps its size.
template <class T>
void give(T& to, T from) noexcept {
    from.size = to.size;
    std::memcpy(&to, &from, std::min<std::size_t>(to.size, sizeof from));
}

}  // namespace holdfast::c
