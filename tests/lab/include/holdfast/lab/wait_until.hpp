// Waiting for a condition, with a cap. Tests of a distributed lock are tempted to wait for "long
// enough" instead; this is the only place in the tests that pauses a thread, so that a search for
// sleeping calls elsewhere finds nothing.
#pragma once

#include <chrono>
#include <string_view>
#include <utility>

namespace holdfast::lab {

/// The cap used where a caller names none: generous, because a loaded machine is no failure.
inline constexpr std::chrono::seconds default_cap{10};

namespace detail {

/// Pauses the calling thread before look number `round`: 0.2 ms at first, 10 ms at most, and never
/// beyond `left`.
void pause_between_looks(unsigned round, std::chrono::nanoseconds left);

/// Throws a LabError which says that `what` did not come true within `cap`.
[[noreturn]] void throw_cap_reached(std::string_view what, std::chrono::nanoseconds cap);

}  // namespace detail

/// Looks at `predicate` until it is true or `cap` has passed, and returns its last answer.
///
/// Blocking: up to `cap` plus one call of the predicate, which is always called at least once and
/// once more after the cap. Thread safety: that of the predicate, called on this thread only.
template <class Predicate>
[[nodiscard]] bool reached(Predicate&& predicate, std::chrono::nanoseconds cap = default_cap) {
    const auto end = std::chrono::steady_clock::now() + cap;
    for (unsigned round = 0;; ++round) {
        if (predicate()) {
            return true;
        }
        const auto left = end - std::chrono::steady_clock::now();
        if (left <= std::chrono::nanoseconds::zero()) {
            return static_cast<bool>(predicate());
        }
        detail::pause_between_looks(round, left);
    }
}

/// Returns when `predicate` is true.
///
/// Errors: LabError naming `what` when `cap` has passed. Blocking and thread safety: as reached().
template <class Predicate>
void wait_until(Predicate&& predicate, std::chrono::nanoseconds cap, std::string_view what) {
    if (!reached(std::forward<Predicate>(predicate), cap)) {
        detail::throw_cap_reached(what, cap);
    }
}

/// Looks at `predicate` for the whole of `duration` and returns whether every look was true: the
/// way to check that something does *not* happen. Returns early at the first false look.
template <class Predicate>
[[nodiscard]] bool stays_true(Predicate&& predicate, std::chrono::nanoseconds duration) {
    return !reached([&] { return !predicate(); }, duration);
}

}  // namespace holdfast::lab
