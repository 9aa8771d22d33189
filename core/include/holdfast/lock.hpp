// Lock: one name at one backend. A Lock is cheap, immutable and safe for concurrent use. It holds
// nothing; a Lease does.
#pragma once
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "holdfast/capabilities.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/options.hpp"

namespace holdfast {

/// The interface of all locks. Client::make_lock makes one; decorators derive from it, too.
class HOLDFAST_EXPORT Lock {
public:
    virtual ~Lock() = default;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    virtual std::string_view name() const noexcept = 0;
    virtual const Capabilities& capabilities() const noexcept = 0;
    /// A decorator returns the kind of the Lock inside.
    virtual Kind kind() const noexcept = 0;
    /// Identifies server and name in one text, for acquire_all. Two Locks have the same place, in
    /// every process, if they are surely one lock. Host names are not resolved. A decorator returns
    /// the place of the Lock inside. Empty: unknown.
    virtual std::string place() const = 0;
    /// A Lock of the same name that lives on its own, and keeps the client open as this one does.
    /// Asynchronous operations use it, since they may begin, or go on, after this object has ended.
    /// Sends nothing. A decorator decorates a clone of the Lock inside. Thread-safe.
    virtual std::unique_ptr<Lock> clone() const = 0;

    /// Waits for the lock and returns a Lease that holds it.
    ///
    /// Blocks for at most `wait`; with `wait` zero, for at most the request time-out (option
    /// `request_timeout`, by default a third of the ttl and at most 2 s). A server that does not
    /// answer within the request time-out fails the call. Once the server has answered, the call
    /// outlasts its faults until `wait` ends. Cancellation: `stop` ends it with `cancelled`, once a
    /// request that this thread sends itself has ended.
    ///
    /// On error nothing stays held or queued: Holdfast withdraws what a request may have left
    /// within a second of the server being reachable, as long as the Client is open; see
    /// Client::close.
    ///
    /// Errors: contended (`wait` was zero), timed_out, cancelled, unavailable, no_quorum, in_doubt,
    /// revoked (broken while it was being granted), denied, kind_mismatch, not_supported (shared
    /// mode, and the lock is no shared_mutex), bad_config (permits out of range), would_deadlock
    /// (called on the engine's thread), closed, forked.
    [[nodiscard]] result<Lease> acquire(const AcquireOptions& options = {},
                                        std::stop_token stop = {}) const {
        return do_acquire(options, std::move(stop));
    }
    /// Makes one attempt: acquire with `wait` zero.
    [[nodiscard]] result<Lease> try_acquire() const {
        return do_acquire({.wait = milliseconds::zero()}, {});
    }
    /// Waits at most so long: acquire with this `wait`.
    template <class R, class P>
    [[nodiscard]] result<Lease> try_acquire_for(std::chrono::duration<R, P> wait) const {
        return do_acquire({.wait = whole_milliseconds(wait)}, {});
    }
    /// Waits until then at most.
    template <class C, class D>
    [[nodiscard]] result<Lease> try_acquire_until(std::chrono::time_point<C, D> t) const {
        return do_acquire({.wait = time_until(t)}, {});
    }

    /// Acquires in shared mode, beside other shared holders; otherwise as acquire.
    [[nodiscard]] result<Lease> acquire_shared(AcquireOptions options = {},
                                               std::stop_token stop = {}) const {
        options.mode = Mode::shared;
        return do_acquire(options, std::move(stop));
    }
    /// Makes one attempt: acquire_shared with `wait` zero.
    [[nodiscard]] result<Lease> try_acquire_shared() const {
        return acquire_shared({.wait = milliseconds::zero()});
    }

    using Signature = void(error_code, Lease);
    // The asynchronous calls of all classes have one shape: f(what, options, token). Options have
    // defaults, and may be left out; the default token is asio::deferred, so that a coroutine of
    // any kind writes `co_await lock->async_acquire()`.

    /// Acquires without blocking; errors and what they leave behind as with acquire. By default
    /// waits without a limit.
    ///
    /// Completion: on the handler's executor, else the client's, never inside this call. Until then
    /// it is outstanding work of that executor. Cancellation: terminal, partial and total alike end
    /// the wait with `cancelled`. Lifetime: the Lock may be destroyed at once, even before a lazy
    /// token (asio::deferred, asio::use_awaitable) begins the operation. An io_context or
    /// thread_pool that is destroyed first destroys the handler without running it, and ends the
    /// wait; any other executor bound to the handler must outlive the Client. In a forked child the
    /// handler never runs.
    template <asio::completion_token_for<Signature> Token = asio::deferred_t>
    [[nodiscard]] auto async_acquire(const AcquireOptions& options = {},
                                     Token&& token = Token()) const {
        return asio::async_initiate<Token, Signature>(
            [self = std::shared_ptr<const Lock>(clone())](
                auto h, const detail::Kept<AcquireOptions>& o) mutable {
                // Not kept for the wait: the client closes with its last handle.
                const auto lock = std::move(self);
                lock->do_async_acquire(o.get(), std::move(h));
            },
            token, detail::Kept(options));
    }
    template <asio::completion_token_for<Signature> Token>
    [[nodiscard]] auto async_acquire(Token&& token) const {
        return async_acquire(AcquireOptions(), std::forward<Token>(token));
    }
    /// Acquires in shared mode; otherwise as async_acquire.
    template <asio::completion_token_for<Signature> Token = asio::deferred_t>
    [[nodiscard]] auto async_acquire_shared(AcquireOptions options = {},
                                            Token&& token = Token()) const {
        options.mode = Mode::shared;
        return async_acquire(options, std::forward<Token>(token));
    }
    template <asio::completion_token_for<Signature> Token>
    [[nodiscard]] auto async_acquire_shared(Token&& token) const {
        return async_acquire_shared(AcquireOptions(), std::forward<Token>(token));
    }

protected:
    Lock() = default;
    using Handler = asio::any_completion_handler<Signature>;
    /// Must copy `note` before it returns. `diagnostics` outlives the operation.
    virtual void do_async_acquire(const AcquireOptions&, Handler) const = 0;
    /// Default: runs do_async_acquire and waits for its completion.
    virtual result<Lease> do_acquire(const AcquireOptions&, std::stop_token) const;
};

}  // namespace holdfast
