// The other half of a fencing token: the check at the store. A store that is not a process's memory
// does the same comparison in its own atomic step (docs/guarantees.md shows SQL and Redis).
#pragma once
#include <mutex>
#include <utility>

#include "holdfast/fencing_token.hpp"

namespace holdfast {

/// Guards one value: a write is refused when its token is below that of any earlier write or read,
/// a read when its token is below that of any earlier write.
///
/// So neither a stale writer writes under later readers, nor does a stale reader see what a later
/// writer has left half done. Equal tokens are accepted: one holder writes many times. Thread-safe;
/// the function runs under the resource's own mutex. After a migration to another backend or
/// deployment call reset(), since tokens of two deployments do not compare.
class FencedResource {
public:
    /// Runs `write` and returns true when `token` is not below the highest token seen.
    template <class Write>
    bool write(FencingToken token, Write&& write) {
        const std::lock_guard hold(mutex_);
        if (!token || token < written_ || token < read_) return false;
        written_ = token;
        std::forward<Write>(write)();
        return true;
    }
    /// Runs `read` and returns true when `token`, a shared holder's, is not below that of the last
    /// write.
    template <class Read>
    bool read(FencingToken token, Read&& read) {
        const std::lock_guard hold(mutex_);
        if (!token || token < written_) return false;
        if (read_ < token) read_ = token;
        std::forward<Read>(read)();
        return true;
    }
    /// Of a write or a read.
    FencingToken highest() const {
        const std::lock_guard hold(mutex_);
        return read_ < written_ ? written_ : read_;
    }
    void reset() {
        const std::lock_guard hold(mutex_);
        written_ = read_ = {};
    }

private:
    mutable std::mutex mutex_;
    FencingToken written_, read_;
};

}  // namespace holdfast
