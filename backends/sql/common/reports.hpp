// What a backend's threads report to core, even one that hangs for longer than its client lives.
#pragma once
#include <functional>
#include <mutex>
#include <string>

#include "holdfast/spi/backend.hpp"

namespace holdfast::sql {

class Reports {
public:
    /// Called when another server serves now, under the mutex; to be set before report_to().
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
    /// Another server serves now: what is held there is unknown until it is renewed. Any thread.
    void moved(const std::string& from, const std::string& to) {
        const std::lock_guard hold(mutex_);
        if (events_ == nullptr) return;
        events_->warn("moved from " + from + " to " + to);
        events_->at_risk({});
        if (on_move) on_move();
    }

private:
    std::mutex mutex_;
    spi::BackendEvents* events_ = nullptr;
};

}  // namespace holdfast::sql
