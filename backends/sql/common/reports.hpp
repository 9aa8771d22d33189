// What a backend's threads report to core, even one that hangs for longer than its client lives.
#pragma once
#include <functional>
#include <mutex>
#include <string>

#include "holdfast/spi/backend.hpp"

namespace holdfast::sql {

class Reports {
public:
    /// Called when another server serves now, before core is told, under the mutex. To be set
    /// before the first connection.
    std::function<void()> on_move;
    /// The receiver; null: none, and no earlier one is called once this returns.
    void report_to(spi::BackendEvents* events) {
        const std::lock_guard hold(mutex_);
        events_ = events;
    }
    /// Something for an operator. Any thread. Core only posts the text, so it does not call back
    /// here under the mutex.
    void warn(std::string text) {
        const std::lock_guard hold(mutex_);
        if (events_ != nullptr) events_->warn(std::move(text));
    }
    /// Another server serves now. Any thread.
    void moved(const std::string& from, const std::string& to) {
        const std::lock_guard hold(mutex_);
        if (events_ == nullptr) return;
        if (on_move) on_move();
        events_->moved(from, to);
    }

private:
    std::mutex mutex_;
    spi::BackendEvents* events_ = nullptr;
};

}  // namespace holdfast::sql
