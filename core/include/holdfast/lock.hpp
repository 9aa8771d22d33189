// Lock: one name at one backend. Cheap, immutable, safe for concurrent use; it holds nothing, a
// Lease does.
#pragma once
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "holdfast/capabilities.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/options.hpp"

namespace holdfast {

/// The abstract interface. Client::make_lock makes one; decorators derive from it, too.
class HOLDFAST_EXPORT Lock {
public:
    virtual ~Lock() = default;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    virtual std::string_view name() const noexcept = 0;
    virtual const Capabilities& capabilities() const noexcept = 0;
    virtual Kind kind() const noexcept { return Kind::mutex; }
    /// Server and name as one text, for acquire_all: equal for Locks of one name at one server, and
    /// in the same order everywhere. Host names are not resolved, so a server that is spelled in
    /// two ways is two. A decorator gives that of the Lock inside; empty: unknown.
    virtual std::string place() const { return {}; }

    /// Waits for the lock and holds it.
    ///
    /// Blocking: at most `wait`. Cancellation: `stop` ends it with `cancelled`; a request that this
    /// thread has under way is waited for. On error nothing is held and nothing is queued, within a
    /// second of the server being reachable, as long as the Client is open; see Client::close.
    /// Errors: contended (wait was zero), timed_out, cancelled, unavailable, in_doubt, denied,
    /// kind_mismatch, not_supported (shared mode of what is no shared_mutex), bad_config (permits
    /// out of range), would_deadlock, closed, forked.
    [[nodiscard]] result<Lease> acquire(const AcquireOptions& options = {},
                                        std::stop_token stop = {}) {
        return do_acquire(options, std::move(stop));
    }
    /// As acquire with `wait` zero: one attempt.
    [[nodiscard]] result<Lease> try_acquire() {
        return do_acquire({.wait = milliseconds::zero()}, {});
    }

    /// As acquire, in shared mode: beside other shared holders.
    [[nodiscard]] result<Lease> acquire_shared(AcquireOptions options = {},
                                               std::stop_token stop = {}) {
        options.mode = Mode::shared;
        return do_acquire(options, std::move(stop));
    }
    /// As acquire_shared with `wait` zero: one attempt.
    [[nodiscard]] result<Lease> try_acquire_shared() {
        return acquire_shared({.wait = milliseconds::zero()});
    }

    using Signature = void(error_code, Lease);
    /// As acquire, without blocking.
    ///
    /// Completion: on the handler's executor, else the client's, never inside this call; until then
    /// it is outstanding work there.
    /// Cancellation: terminal, partial and total alike end the wait. Lifetime: the Lock may be
    /// destroyed meanwhile. An io_context or thread_pool destroyed first takes the handler with it,
    /// unrun, and ends the wait; any other executor bound to the handler must outlive the Client.
    template <asio::completion_token_for<Signature> Token>
    auto async_acquire(const AcquireOptions& options, Token&& token) {
        return asio::async_initiate<Token, Signature>(
            [this](auto h, AcquireOptions o) { do_async_acquire(o, std::move(h)); }, token,
            options);
    }
    /// With the options' defaults: waits for as long as it takes.
    template <asio::completion_token_for<Signature> Token>
    auto async_acquire(Token&& token) {
        return async_acquire(AcquireOptions(), std::forward<Token>(token));
    }

protected:
    Lock() = default;
    using Handler = asio::any_completion_handler<Signature>;
    /// Copies what the options point to before it returns.
    virtual void do_async_acquire(const AcquireOptions&, Handler) = 0;
    /// Default: bridges over do_async_acquire.
    virtual result<Lease> do_acquire(const AcquireOptions&, std::stop_token);
};

}  // namespace holdfast
