// The other half of a fencing token: the check at the store. A store that is not a process's memory
// does the same comparison in its own atomic step (docs/guarantees.md shows SQL and Redis).
#pragma once
#include <mutex>
#include <utility>

#include "holdfast/fencing_token.hpp"

namespace holdfast {

/// Guards one value: a write with a token below the highest one seen is refused.
///
/// Equal tokens are accepted: one holder writes many times. Thread-safe; the function runs under
/// the resource's own mutex. After a migration to another backend or deployment call reset(),
/// since tokens of two deployments do not compare.
class FencedResource {
public:
    /// Runs `write` and returns true when `token` is not below the highest token seen.
    template <class Write>
    bool write(FencingToken token, Write&& write) {
        const std::lock_guard hold(mutex_);
        if (!token || token < highest_) return false;
        highest_ = token;
        std::forward<Write>(write)();
        return true;
    }
    FencingToken highest() const {
        const std::lock_guard hold(mutex_);
        return highest_;
    }
    void reset() {
        const std::lock_guard hold(mutex_);
        highest_ = {};
    }

private:
    mutable std::mutex mutex_;
    FencingToken highest_;
};

}  // namespace holdfast
