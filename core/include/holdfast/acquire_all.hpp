// Several locks at once, all or nothing: an algorithm over Locks, as std::lock is over mutexes.
#pragma once
#include "holdfast/lease_set.hpp"
#include "holdfast/lock.hpp"

namespace holdfast {

/// One of the locks that acquire_all() takes, and how.
struct Part {
    Part(Lock& l, Mode m = Mode::exclusive, std::uint32_t p = 1) : lock(&l), mode(m), permits(p) {}
    Lock* lock;
    Mode mode;
    std::uint32_t permits;
};

struct AcquireAllOptions {
    /// Bounds the whole call, however many locks it takes. Zero: one attempt for each.
    milliseconds wait = forever;
    /// As AcquireOptions::note, for each lock.
    std::string_view note = {};
    /// Filled on error when given; must outlive the operation.
    Diagnostics* diagnostics = nullptr;
    /// On error, the number of the part that failed, when given; must outlive the operation.
    std::size_t* failed = nullptr;
};
static_assert(std::is_trivially_copyable_v<AcquireAllOptions>);

/// Waits for all of the locks, of any clients, and holds them together.
///
/// They are taken one after the other in the order of Lock::place, the same everywhere, so that two
/// callers cannot each hold what the other waits for. Two spellings of one server are two places:
/// then they can, until `wait` ends. A lock that is named twice in the same way is taken once. The
/// first failure gives all back, in reverse; so does the loss of one while the next is waited for.
///
/// Blocking: at most `wait`. Cancellation: `stop` ends it with `cancelled`.
/// Errors: those of Lock::acquire; lost, revoked (a part was, meanwhile); bad_config (no part; one
/// lock in two modes or with two numbers of permits; a Lock that does not know its place).
[[nodiscard]] HOLDFAST_EXPORT result<LeaseSet> acquire_all(const std::vector<Part>& parts,
                                                           const AcquireAllOptions& = {},
                                                           std::stop_token = {});

using AcquireAllSignature = void(error_code, LeaseSet);
HOLDFAST_EXPORT void start_acquire_all(const std::vector<Part>&, const AcquireAllOptions&,
                                       asio::any_completion_handler<AcquireAllSignature>);

/// As acquire_all, without blocking. The Locks must live until it completes.
///
/// Completion: on the handler's executor, else on a thread of Holdfast's, never inside this call;
/// until then it is outstanding work there. Cancellation: terminal, partial and total alike end it.
template <asio::completion_token_for<AcquireAllSignature> Token>
auto async_acquire_all(std::vector<Part> parts, const AcquireAllOptions& options, Token&& token) {
    return asio::async_initiate<Token, AcquireAllSignature>(
        [](auto h, const std::vector<Part>& p, AcquireAllOptions o) {
            start_acquire_all(p, o, std::move(h));
        },
        token, std::move(parts), options);
}

}  // namespace holdfast
