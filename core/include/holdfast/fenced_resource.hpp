// The check of fencing tokens at the store. A store outside this process's memory makes the same
// comparison in its own atomic step (docs/guarantees.md shows SQL and Redis).
#pragma once
#include <mutex>
#include <utility>

#include "holdfast/fencing_token.hpp"

namespace holdfast {

/// Guards one value. Refuses a write with a token below that of an earlier write or read, and a
/// read with a token below that of an earlier write.
///
/// So a stale writer cannot write under later readers, and a stale reader cannot see what a later
/// writer has left half done. Equal tokens are accepted, since one holder writes many times; zero
/// is refused. Thread-safe; the function runs under the resource's own mutex. Tokens of two
/// deployments do not compare: call reset() after a migration to another backend or deployment.
class FencedResource {
public:
    /// Runs `write` and returns true, unless `token` is zero or below the highest token seen.
    template <class Write>
    bool write(FencingToken token, Write&& write) {
        const std::lock_guard hold(mutex_);
        if (!token || token < written_ || token < read_) return false;
        written_ = token;
        std::forward<Write>(write)();
        return true;
    }
    /// Runs `read` and returns true, unless `token`, a shared holder's, is zero or below that of
    /// the last write.
    template <class Read>
    bool read(FencingToken token, Read&& read) {
        const std::lock_guard hold(mutex_);
        if (!token || token < written_) return false;
        if (read_ < token) read_ = token;
        std::forward<Read>(read)();
        return true;
    }
    /// The highest token of a write or a read.
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
