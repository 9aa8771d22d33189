// An asynchronous operation that any thread may cancel. A cancellation signal must not be emitted
// while the handler runs, so a Serial runs both in turn.
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <memory>
#include <utility>

#include "serial.hpp"

namespace holdfast {

namespace asio = boost::asio;

/// For one operation. A class that derives from it is held by shared_ptr.
class Cancellable : public std::enable_shared_from_this<Cancellable> {
public:
    /// May be called at any time, even before start().
    void cancel() {
        Serial::run(serial_, [self = shared_from_this()] {
            self->cancelled_ = true;
            self->emit();
        });
    }

protected:
    ~Cancellable() = default;
    /// Calls begin(handler), which starts the operation. The handler given to it calls `answered`,
    /// which keeps this object, in turn with cancel().
    template <class Answered, class Begin>
    void start(Answered answered, Begin begin) {
        Serial::run(serial_, [self = shared_from_this(), answered = std::move(answered),
                              begin = std::move(begin)]() mutable {
            begin(asio::bind_executor(
                SerialExecutor(self->serial_),
                asio::bind_cancellation_slot(self->signal_.slot(), std::move(answered))));
            if (self->cancelled_) self->emit();
        });
    }

private:
    void emit() { signal_.emit(asio::cancellation_type::terminal); }

    const std::shared_ptr<Serial> serial_ = std::make_shared<Serial>();
    asio::cancellation_signal signal_;  // this and the next: only in jobs of the Serial
    bool cancelled_ = false;
};

}  // namespace holdfast
