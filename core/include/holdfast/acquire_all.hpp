// Acquires several locks, all or none: an algorithm over Locks, as std::lock is over mutexes.
#pragma once
#include "holdfast/lease_set.hpp"
#include "holdfast/lock.hpp"

namespace holdfast {

/// One lock for acquire_all(), and how to acquire it. Has a clone of the Lock, so it may outlive
/// it.
struct Part {
    Part(const Lock& l, Mode m = Mode::exclusive, std::uint32_t p = 1)
        : lock(l.clone()), mode(m), permits(p) {}
    std::shared_ptr<Lock> lock;
    Mode mode;
    std::uint32_t permits;
};

struct AcquireAllOptions {
    /// Limit of the whole call, however many locks it acquires. Zero: one attempt for each.
    milliseconds wait = forever;
    /// As AcquireOptions::note, for each lock.
    std::string_view note = {};
    /// Receives the details of an error; must outlive the operation.
    Diagnostics* diagnostics = nullptr;
    /// Receives the number of the part that failed; must outlive the operation.
    std::size_t* failed = nullptr;
};
static_assert(std::is_trivially_copyable_v<AcquireAllOptions>);

/// Acquires all of the locks, of any clients, and holds them together.
///
/// Acquires them one by one in the order of Lock::place, which is the same for all callers, so that
/// no two callers each hold what the other waits for. Names of hosts are not resolved: two names of
/// one server are two places. There, two callers can block each other, and a call itself, until
/// `wait` ends. A lock that is named twice in the same way is acquired once. The first failure
/// releases all parts in reverse order, and so does the loss of one while the next is waited for.
///
/// Blocks for at most `wait`; with `wait` zero, for at most the request time-out for each lock.
/// Cancellation: `stop` ends it with `cancelled`. Errors: those of Lock::acquire; lost, revoked (a
/// part was lost meanwhile); bad_config (no part, one lock in two modes or with two numbers of
/// permits, a Lock without a place, or two parts of one name whose configurations leave open
/// whether they are one lock, such as PostgreSQL with a schema and without).
[[nodiscard]] HOLDFAST_EXPORT result<LeaseSet> acquire_all(const std::vector<Part>& parts,
                                                           const AcquireAllOptions& = {},
                                                           std::stop_token = {});

using AcquireAllSignature = void(error_code, LeaseSet);
HOLDFAST_EXPORT void start_acquire_all(const std::vector<Part>&, const AcquireAllOptions&,
                                       asio::any_completion_handler<AcquireAllSignature>);

/// As acquire_all, without blocking. The Locks may be destroyed at once; their clients stay open
/// until it completes.
///
/// Completion: on the handler's executor, else on a thread of Holdfast's, never inside this call.
/// Until then it is outstanding work of that executor. Cancellation: terminal, partial and total
/// alike end it with `cancelled`.
template <asio::completion_token_for<AcquireAllSignature> Token = asio::deferred_t>
[[nodiscard]] auto async_acquire_all(std::vector<Part> parts, const AcquireAllOptions& options = {},
                                     Token&& token = Token()) {
    return asio::async_initiate<Token, AcquireAllSignature>(
        [](auto h, const std::vector<Part>& p, const detail::Kept<AcquireAllOptions>& o) {
            start_acquire_all(p, o.get(), std::move(h));
        },
        token, std::move(parts), detail::Kept(options));
}
template <asio::completion_token_for<AcquireAllSignature> Token>
[[nodiscard]] auto async_acquire_all(std::vector<Part> parts, Token&& token) {
    return async_acquire_all(std::move(parts), AcquireAllOptions(), std::forward<Token>(token));
}

}  // namespace holdfast
