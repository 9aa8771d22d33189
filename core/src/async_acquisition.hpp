// An asynchronous acquisition that any thread may cancel.
#pragma once
#include <functional>
#include <iterator>
#include <memory>
#include <string>

#include "cancellable.hpp"
#include "holdfast/lock.hpp"

namespace holdfast {

/// Hands an operation's own diagnostics to its caller.
inline void append(Diagnostics& own, Diagnostics& to) {
    to.entries.insert(to.entries.end(), std::make_move_iterator(own.entries.begin()),
                      std::make_move_iterator(own.entries.end()));
    own.entries.clear();
}

/// For one use. Keeps the Lock until it is done.
class AsyncAcquisition final : public Cancellable {
public:
    using Done = std::function<void(error_code, Lease)>;

    AsyncAcquisition(std::shared_ptr<Lock> lock, Done done)
        : lock_(std::move(lock)), done_(std::move(done)) {}
    /// Calls `done` once, on a thread for user code, never inside this call.
    void start(const AcquireOptions& options) {
        const auto self = std::static_pointer_cast<AsyncAcquisition>(shared_from_this());
        Cancellable::start(
            [self](error_code ec, Lease lease) { self->done_(ec, std::move(lease)); },
            [self, options](auto handler) {
                self->lock_->async_acquire(options, std::move(handler));
            });
    }

private:
    const std::shared_ptr<Lock> lock_;
    const Done done_;
};

}  // namespace holdfast
