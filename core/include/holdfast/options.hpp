// What a caller may ask for: fixed per lock (LockOptions), or per acquisition (AcquireOptions).
#pragma once
#include <optional>
#include <string_view>
#include <type_traits>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/kind.hpp"

namespace holdfast {

/// Fixed for one Lock object.
struct LockOptions {
    /// How long the server keeps a lease that is not renewed, 100 ms to 24 h. Default: the
    /// configuration's `ttl`, else 10 s.
    std::optional<milliseconds> ttl = {};
    /// False: a fixed lease, never renewed by itself, lost at its ttl.
    bool renew = true;
    /// The lease is declared lost this long after it was granted, however alive its process is: the
    /// remedy for a worker that hangs while renewals go on. Default: no limit.
    milliseconds max_hold = forever;
    Kind kind = Kind::mutex;
    /// Of a semaphore: how many permits there are, 1 to 65,535. All its clients name the same.
    std::uint32_t limit = 1;
    /// When a holder has gone without releasing, the name stays closed for so much longer than its
    /// lease was valid: for work that cannot stop at once. At most 24 h. A release opens it at
    /// once.
    milliseconds lock_delay{0};
    /// A holder that releases earlier leaves the name closed until so long after its grant: no task
    /// runs more often. At most 24 h.
    milliseconds min_hold{0};
};

/// Asked for with each acquisition.
struct AcquireOptions {
    /// Bounds the whole call, however many steps it takes. Zero: one attempt.
    milliseconds wait = forever;
    /// Shown by inspect; at most 128 bytes are kept. Copied when the call starts: with a lazy
    /// completion token (deferred, use_awaitable) it must live until then.
    std::string_view note = {};
    /// Filled on error when given; must outlive the operation.
    Diagnostics* diagnostics = nullptr;
    /// Only a shared_mutex takes `shared`.
    Mode mode = Mode::exclusive;
    /// Of a semaphore: how many permits at once, 1 to 256 and at most its limit.
    std::uint32_t permits = 1;
};

// g++ 12 copies an aggregate temporary inside a co_await expression bit by bit (a std::string or
// std::stop_token in it is then freed twice). Trivially copyable options make
// `co_await lock->async_acquire({.wait = 5s}, token)` right everywhere.
static_assert(std::is_trivially_copyable_v<AcquireOptions> &&
              std::is_trivially_copyable_v<LockOptions>);

}  // namespace holdfast
