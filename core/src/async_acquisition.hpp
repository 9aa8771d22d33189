// An asynchronous acquisition that any thread may cancel. A cancellation signal must not be emitted
// while the handler runs, so a Serial runs both in turn.
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <functional>
#include <iterator>
#include <memory>
#include <string>

#include "holdfast/lock.hpp"
#include "serial.hpp"

namespace holdfast {

/// Hands an operation's own diagnostics to its caller.
inline void append(Diagnostics& own, Diagnostics& to) {
    to.entries.insert(to.entries.end(), std::make_move_iterator(own.entries.begin()),
                      std::make_move_iterator(own.entries.end()));
    own.entries.clear();
}

/// For one use. Keeps the Lock until it is done.
class AsyncAcquisition : public std::enable_shared_from_this<AsyncAcquisition> {
public:
    using Done = std::function<void(error_code, Lease)>;

    AsyncAcquisition(std::shared_ptr<Lock> lock, Done done)
        : lock_(std::move(lock)), done_(std::move(done)) {}
    /// Calls `done` once, on a thread for user code, never inside this call.
    void start(const AcquireOptions& options) {
        Serial::run(serial_, [self = shared_from_this(), options] {
            auto answered = [self](error_code ec, Lease lease) {
                self->done_(ec, std::move(lease));
            };
            self->lock_->async_acquire(
                options,
                asio::bind_executor(SerialExecutor(self->serial_),
                                    asio::bind_cancellation_slot(self->cancel_.slot(), answered)));
            if (self->cancelled_) self->cancel_.emit(asio::cancellation_type::terminal);
        });
    }
    /// May be called at any time, even before start().
    void cancel() {
        Serial::run(serial_, [self = shared_from_this()] {
            self->cancelled_ = true;
            self->cancel_.emit(asio::cancellation_type::terminal);
        });
    }

private:
    const std::shared_ptr<Lock> lock_;
    const Done done_;
    const std::shared_ptr<Serial> serial_ = std::make_shared<Serial>();
    asio::cancellation_signal cancel_;  // this and the next: only in jobs of the Serial
    bool cancelled_ = false;
};

}  // namespace holdfast
