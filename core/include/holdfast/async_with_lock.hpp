// with_lock for coroutines: what runs under the lock is cancelled when the lock is lost.
#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "holdfast/election.hpp"
#include "holdfast/with_lock.hpp"

namespace holdfast {
namespace detail {

template <class F>
using CoReturned = typename Returned<F>::value_type;

/// What ended first decides: an exception of `f`, or its value; the loss cancels `f`.
template <class T>
struct Ended {
    std::exception_ptr failure;
    std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>> value;
};

template <class T>
asio::awaitable<Ended<T>> until_lost(asio::awaitable<T> work, Lease& lease) {
    auto executor = co_await asio::this_coro::executor;
    // The group cancels `f` where the loss completes, which has to be where `f` runs.
    auto both = asio::experimental::make_parallel_group(
        asio::co_spawn(executor, std::move(work), asio::deferred),
        lease.async_lost(asio::bind_executor(executor, asio::deferred)));
    Ended<T> ended;
    if constexpr (std::is_void_v<T>) {
        auto [order, failure, lost] =
            co_await both.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
        ended.failure = failure;
        if (!failure) ended.value.emplace();
    } else {
        auto [order, failure, value, lost] =
            co_await both.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
        ended.failure = failure;
        if (!failure) ended.value.emplace(std::move(value));
    }
    co_return ended;
}

template <class T, class F>
asio::awaitable<T> co_run_under(Lease lease, F f) {
    auto work = call_under(f, std::as_const(lease));
    auto watched = until_lost<T>(std::move(work), lease);
    Ended<T> ended = co_await std::move(watched);
    // A cancellation that came meanwhile must not cost the release.
    const bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    auto releasing = lease.async_release(ended.failure ? Outcome::abandoned : Outcome::done,
                                         asio::as_tuple(asio::use_awaitable));
    const auto released = co_await std::move(releasing);
    co_await asio::this_coro::throw_if_cancelled(throws);
    // A loss tells more than the cancellation that it caused.
    if (const auto ec = lost_before(std::get<1>(released), lease))
        throw boost::system::system_error(ec, "holdfast: the lock was lost");
    if (ended.failure) std::rethrow_exception(ended.failure);
    if constexpr (!std::is_void_v<T>) co_return std::move(*ended.value);
}

template <class T, class F>
asio::awaitable<T> co_with_lock(std::unique_ptr<Lock> lock, Kept<AcquireOptions> options, F f) {
    auto acquiring = lock->async_acquire(options.get(), asio::use_awaitable);
    Lease lease = co_await std::move(acquiring);
    lock.reset();  // the client closes with its last handle
    auto run = co_run_under<T, F>(std::move(lease), std::move(f));
    co_return co_await std::move(run);
}

template <class T, class F>
asio::awaitable<T> co_lead(asio::awaitable<Lease> campaign, F f) {
    Lease term = co_await std::move(campaign);
    auto run = co_run_under<T, F>(std::move(term), std::move(f));
    co_return co_await std::move(run);
}

}  // namespace detail

/// As with_lock, for a coroutine: `f` returns an asio::awaitable, and takes the Lease, the
/// stop_token of its loss, or nothing. Returns what `f` returns.
///
/// A loss cancels `f` (with all cancellation types), as does a cancellation of the caller. The call
/// ends when `f` has ended and the lock is released. Throws boost::system::system_error with the
/// errors of Lock::acquire, or with lost_reason() when the lock was lost before `f` had ended; an
/// exception of `f` passes through, and the lock is released as abandoned. `f` runs on the executor
/// of the caller, which runs one handler at a time: a strand where several threads run its loop.
/// Copies `f`, and needs the Lock only until it returns the awaitable.
template <UnderLock F>
[[nodiscard]] auto async_with_lock(const Lock& lock, const AcquireOptions& options, F f)
    -> asio::awaitable<detail::CoReturned<F>> {
    return detail::co_with_lock<detail::CoReturned<F>>(lock.clone(), detail::Kept(options),
                                                       std::move(f));
}
/// Waits for the lock without a limit.
template <UnderLock F>
[[nodiscard]] auto async_with_lock(const Lock& lock, F f) {
    return async_with_lock(lock, AcquireOptions(), std::move(f));
}

/// Campaigns with `value`, runs `f` for the term, and resigns; otherwise as async_with_lock.
template <UnderLock F>
[[nodiscard]] auto async_lead(const Election& election, std::string value,
                              const AcquireOptions& options, F f)
    -> asio::awaitable<detail::CoReturned<F>> {
    return detail::co_lead<detail::CoReturned<F>>(
        election.async_campaign(std::move(value), options, asio::use_awaitable), std::move(f));
}
/// Waits for the term without a limit.
template <UnderLock F>
[[nodiscard]] auto async_lead(const Election& election, std::string value, F f) {
    return async_lead(election, std::move(value), AcquireOptions(), std::move(f));
}

}  // namespace holdfast
