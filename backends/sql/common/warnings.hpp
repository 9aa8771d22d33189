// Warnings for an operator from any thread of a backend, even from one that hangs for longer than
// its client lives.
#pragma once
#include <mutex>
#include <string>

#include "holdfast/spi/backend.hpp"

namespace holdfast::sql {

class Warnings {
public:
    /// The receiver; null: none, and no earlier one is called once this returns.
    void report_to(spi::BackendEvents* events) {
        const std::lock_guard hold(mutex_);
        events_ = events;
    }
    /// Any thread. Core only posts the text, so it does not call back here under the mutex.
    void tell(std::string text) {
        const std::lock_guard hold(mutex_);
        if (events_ != nullptr) events_->warn(std::move(text));
    }

private:
    std::mutex mutex_;
    spi::BackendEvents* events_ = nullptr;
};

}  // namespace holdfast::sql
