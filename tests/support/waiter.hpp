// An acquisition that waits, and what became of it.
#pragma once
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <chrono>
#include <holdfast/lock.hpp>
#include <memory>

#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace test_support {

/// Waits for a minute at most.
class Waiter {
public:
    Waiter(holdfast::Lock& lock, holdfast::AcquireOptions options) {
        options.wait = std::chrono::minutes(1);
        lock.async_acquire(options, boost::asio::bind_cancellation_slot(
                                        state_->signal.slot(),
                                        [s = state_](holdfast::error_code ec, holdfast::Lease l) {
                                            s->why = ec;
                                            s->lease = std::move(l);
                                            s->done = true;
                                        }));
    }
    bool done() const { return state_->done; }
    void cancel() { state_->signal.emit(boost::asio::cancellation_type::terminal); }
    /// Why it was not granted, once it has ended.
    holdfast::error_code why(std::chrono::seconds cap = std::chrono::seconds(20)) const {
        holdfast::lab::wait_until([&] { return done(); }, cap, "its wait has ended");
        return state_->why;
    }
    /// Once it is granted.
    holdfast::Lease lease(std::chrono::seconds cap = std::chrono::seconds(20)) {
        CHECK_FALSE(why(cap));
        return std::move(state_->lease);
    }

private:
    /// The handler has it, too: it outlives the wait.
    struct State {
        boost::asio::cancellation_signal signal;
        holdfast::error_code why;
        holdfast::Lease lease;
        std::atomic<bool> done{false};
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace test_support
