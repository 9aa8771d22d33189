// Options: fixed for a lock (LockOptions), or given with each acquisition (AcquireOptions).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/kind.hpp"

namespace holdfast {

/// Fixed for one Lock.
struct LockOptions {
    /// How long the server keeps the lease without a renewal: 100 ms to 24 h. Default: the
    /// configuration's `ttl`, else 10 s.
    std::optional<milliseconds> ttl = {};
    /// False: Holdfast does not renew the lease, so it is lost at its ttl.
    bool renew = true;
    /// Declares the lease lost this long after the grant, even if renewals succeed: for workers
    /// that hang. The name is then free at the end of the ttl. Default: no limit.
    milliseconds max_hold = forever;
    Kind kind = Kind::mutex;
    /// Permits of a semaphore: 1 to 65,535. All its clients name the same limit.
    std::uint32_t limit = 1;
    /// How long the name stays closed after the validity of a lease that ended without a release,
    /// for work that cannot stop at once: up to 24 h. A release opens the name at once.
    milliseconds lock_delay{0};
    /// How long the name stays closed from a grant on, even if the holder releases earlier, so that
    /// no task runs more often: up to 24 h.
    milliseconds min_hold{0};
};

/// Given with each acquisition.
struct AcquireOptions {
    /// Limit of the whole call, however many steps it takes. Zero: one attempt.
    milliseconds wait = forever;
    /// Text that inspect shows; at most 128 bytes are kept. Copied by the call.
    std::string_view note = {};
    /// Receives the details of an error; must outlive the operation.
    Diagnostics* diagnostics = nullptr;
    /// Only a shared_mutex has `shared`.
    Mode mode = Mode::exclusive;
    /// Permits of a semaphore to acquire at once: 1 to 256, and at most its limit.
    std::uint32_t permits = 1;
};

// g++ 12 copies an aggregate temporary inside a co_await expression bit by bit, so a std::string or
// std::stop_token in it is freed twice. Trivially copyable options make `co_await
// lock->async_acquire({.wait = 5s}, token)` safe.
static_assert(std::is_trivially_copyable_v<AcquireOptions> &&
              std::is_trivially_copyable_v<LockOptions>);

namespace detail {

/// Options that own their note, for an operation that a lazy token begins later.
template <class Options>
class Kept {
public:
    explicit Kept(const Options& options) : options_(options), note_(options.note) {}
    /// Valid as long as this object.
    Options get() const {
        Options o = options_;
        o.note = note_;
        return o;
    }

private:
    Options options_;
    std::string note_;
};

}  // namespace detail

}  // namespace holdfast
