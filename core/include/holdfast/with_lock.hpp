// Runs a function while a lock is held: acquires it, tells the function of a loss, releases it.
#pragma once
#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include "holdfast/lock.hpp"

namespace holdfast {

/// What runs under a lock: takes the Lease, or the stop_token of its loss, or nothing.
template <class F>
concept UnderLock =
    std::invocable<F, const Lease&> || std::invocable<F, std::stop_token> || std::invocable<F>;

namespace detail {

template <class F>
decltype(auto) call_under(F&& f, const Lease& lease) {
    if constexpr (std::invocable<F, const Lease&>)
        return std::invoke(std::forward<F>(f), lease);
    else if constexpr (std::invocable<F, std::stop_token>)
        return std::invoke(std::forward<F>(f), lease.lost());
    else
        return std::invoke(std::forward<F>(f));
}

/// T, or of a result<T> its T.
template <class T>
struct Value {
    using type = T;
};
template <class T>
struct Value<result<T>> {
    using type = T;
};
template <class F>
using Returned = decltype(call_under(std::declval<F>(), std::declval<const Lease&>()));
template <class F>
using UnderResult = result<typename Value<std::remove_cvref_t<Returned<F>>>::type>;

/// Why the result of what ran under the lease must not count; no error: it was held to the end.
inline error_code lost_before(ReleaseResult answer, const Lease& lease) {
    if (answer == ReleaseResult::released || answer == ReleaseResult::unreachable) return {};
    const error_code why = lease.lost_reason();
    return why ? why : make_error_code(errc::lost);
}

template <class F>
UnderResult<F> run_under(result<Lease> granted, F&& f) {
    if (!granted) return granted.error();
    Lease lease = std::move(*granted);  // released as abandoned where f throws
    auto returned = [&]() -> UnderResult<F> {
        if constexpr (std::is_void_v<Returned<F>>) {
            call_under(std::forward<F>(f), lease);
            return {};
        } else {
            return call_under(std::forward<F>(f), lease);
        }
    }();
    const auto answer = lease.release(returned ? Outcome::done : Outcome::abandoned);
    if (returned)
        if (const auto ec = lost_before(answer, lease)) return ec;
    return returned;
}

}  // namespace detail

/// Acquires the lock, runs `f`, releases the lock, and returns what `f` returned.
///
/// `f` may take a std::stop_token, which is requested when the lock is lost: it should then stop at
/// once. Or it takes the Lease, whose fencing_token() goes to the store. When it throws, or returns
/// a result with an error, the lock is released as abandoned, which the next holder reads as
/// previous_holder().
///
/// Blocks, is cancelled and fails as Lock::acquire, then as long as `f`, then for at most the
/// request time-out. Errors: those of Lock::acquire, those that `f` returns, and lost_reason() when
/// the lock was lost before `f` had ended: what it did may have collided. An exception of `f`
/// passes through.
template <UnderLock F>
[[nodiscard]] auto with_lock(const Lock& lock, const AcquireOptions& options, F&& f,
                             std::stop_token stop = {}) {
    return detail::run_under(lock.acquire(options, std::move(stop)), std::forward<F>(f));
}
/// Waits for the lock without a limit.
template <UnderLock F>
[[nodiscard]] auto with_lock(const Lock& lock, F&& f) {
    return detail::run_under(lock.acquire(), std::forward<F>(f));
}

}  // namespace holdfast
