// A lock that belongs to an executor, as Asio's own objects do: it has a default completion token
// and completes handlers there.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "holdfast/lock.hpp"

namespace holdfast {

/// Made of an executor and a Lock: `async_lock(executor, client.make_lock("orders").value())`. An
/// argument of as_default_on() of Asio's tokens, which returns one with that token as its default.
/// Movable. Thread-safe as a Lock.
template <class Executor = asio::any_io_executor>
class async_lock {
public:
    using executor_type = Executor;
    /// asio::deferred where the executor names none.
    using default_token =
        std::conditional_t<std::is_void_v<asio::default_completion_token_t<Executor>>,
                           asio::deferred_t, asio::default_completion_token_t<Executor>>;
    /// The same with another type of executor.
    template <class Other>
    struct rebind_executor {
        using other = async_lock<Other>;
    };

    async_lock(Executor executor, std::unique_ptr<Lock> lock) noexcept
        : executor_(std::move(executor)), lock_(std::move(lock)) {}
    template <class Other>
    requires std::constructible_from<Executor, const Other&> async_lock(async_lock<Other>&& other)
        : executor_(other.executor_), lock_(std::move(other.lock_)) {}

    executor_type get_executor() const noexcept { return executor_; }
    const Lock& lock() const noexcept { return *lock_; }

    /// As Lock::async_acquire, but a handler that names no executor runs on this object's.
    template <asio::completion_token_for<Lock::Signature> Token = default_token>
    [[nodiscard]] auto async_acquire(const AcquireOptions& options = {},
                                     Token&& token = Token()) const {
        return asio::async_initiate<Token, Lock::Signature>(
            [lock = lock_, executor = executor_](auto handler,
                                                 const detail::Kept<AcquireOptions>& o) mutable {
                // Not kept for the wait: the client closes with its last handle.
                const auto mine = std::move(lock);
                auto where = asio::get_associated_executor(handler, executor);
                mine->async_acquire(o.get(), asio::bind_executor(where, std::move(handler)));
            },
            token, detail::Kept(options));
    }
    template <asio::completion_token_for<Lock::Signature> Token>
    [[nodiscard]] auto async_acquire(Token&& token) const {
        return async_acquire(AcquireOptions(), std::forward<Token>(token));
    }
    /// As Lock::async_acquire_shared.
    template <asio::completion_token_for<Lock::Signature> Token = default_token>
    [[nodiscard]] auto async_acquire_shared(AcquireOptions options = {},
                                            Token&& token = Token()) const {
        options.mode = Mode::shared;
        return async_acquire(options, std::forward<Token>(token));
    }
    template <asio::completion_token_for<Lock::Signature> Token>
    [[nodiscard]] auto async_acquire_shared(Token&& token) const {
        return async_acquire_shared(AcquireOptions(), std::forward<Token>(token));
    }

private:
    template <class>
    friend class async_lock;
    Executor executor_;
    std::shared_ptr<const Lock> lock_;
};

}  // namespace holdfast
