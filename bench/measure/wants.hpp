// What a measured caller wants of a name: a mutex, or one of the other kinds.
#pragma once
#include <holdfast/capabilities.hpp>
#include <holdfast/options.hpp>
#include <optional>

namespace holdfast::bench {

struct Wants {
    const char* words = "mutex";
    LockOptions lock{};
    AcquireOptions how{};
    std::optional<Capability> needs{};
};

inline constexpr Wants a_mutex{};
inline constexpr Wants to_write{
    "shared_mutex, exclusive", {.kind = Kind::shared_mutex}, {}, Capability::shared};
inline constexpr Wants to_read{"shared_mutex, shared",
                               {.kind = Kind::shared_mutex},
                               {.mode = Mode::shared},
                               Capability::shared};
inline constexpr Wants a_permit{
    "semaphore, 1 of 4", {.kind = Kind::semaphore, .limit = 4}, {}, Capability::semaphore};

}  // namespace holdfast::bench
