// What an operator should know of the deployment, said by any thread of a backend: also by one that
// hangs for longer than its client lives.
#pragma once
#include <mutex>
#include <string>

#include "holdfast/spi/backend.hpp"

namespace holdfast::sql {

class Warnings {
public:
    /// To whom; null: to nobody, and to nobody before once this returns.
    void report_to(spi::BackendEvents* events) {
        const std::lock_guard hold(mutex_);
        events_ = events;
    }
    /// Any thread. Core only posts it, so that nothing comes back here under the mutex.
    void tell(std::string text) {
        const std::lock_guard hold(mutex_);
        if (events_ != nullptr) events_->warn(std::move(text));
    }

private:
    std::mutex mutex_;
    spi::BackendEvents* events_ = nullptr;
};

}  // namespace holdfast::sql
