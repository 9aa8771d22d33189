#include "lanes.hpp"

namespace holdfast {

Lanes::Loan Lanes::borrow() {
    {
        const std::lock_guard hold(mutex_);
        if (none_ || stopped_ || out_ >= most) return {};
        ++out_;
        if (!idle_.empty()) {
            auto lane = std::move(idle_.back().lane);
            idle_.pop_back();
            return {this, std::move(lane)};
        }
    }
    std::unique_ptr<spi::Lane> lane;
    bool none = false;
    try {
        lane = backend_->open_lane();
        none = !lane;
    } catch (const std::exception&) {
        // Perhaps for want of memory: the next caller tries again, this one takes the engine.
    }
    if (lane) return {this, std::move(lane)};
    const std::lock_guard hold(mutex_);
    none_ = none_ || none;
    back_with_none();
    return {};
}

void Lanes::give_back(std::unique_ptr<spi::Lane> lane) noexcept {
    const auto now = boot_clock::now();
    const std::lock_guard hold(mutex_);
    if (!stopped_) {
        idle_.push_back({std::move(lane), now});
        // While it is out: when all are back, all may end.
        if (!std::exchange(watched_, true)) watch_(now + patience);
    }
    back_with_none();
}

void Lanes::close_idle(boot_clock::time_point now) {
    for (;;) {
        std::unique_ptr<spi::Lane> old;  // ends without the mutex
        const std::lock_guard hold(mutex_);
        watched_ = !idle_.empty();
        if (idle_.empty()) return;
        if (const auto due = idle_.front().since + patience; due > now) return watch_(due);
        old = std::move(idle_.front().lane);
        idle_.erase(idle_.begin());
    }
}

void Lanes::back_with_none() {
    if (--out_ == 0 && stopped_) back_.notify_all();
}

void Lanes::wait(boot_clock::time_point until) {
    std::unique_lock hold(mutex_);
    back_.wait_for(hold, until - boot_clock::now(), [&] { return out_ == 0; });
}

void Lanes::stop() {
    std::vector<Idle> idle;
    const std::lock_guard hold(mutex_);
    stopped_ = true;
    idle.swap(idle_);
}

}  // namespace holdfast
