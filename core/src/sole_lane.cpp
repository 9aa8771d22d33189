#include "sole_lane.hpp"

namespace holdfast {

SoleLane::Ptr SoleLane::borrow() {
    const std::lock_guard hold(mutex_);
    if (!idle_ || idle_->descriptor() < 0) return nullptr;
    out_ = true;
    return std::move(idle_);
}

SoleLane::Ptr SoleLane::to_open() {
    const std::lock_guard hold(mutex_);
    if (out_ || stopped_ || none_ || ++asked_ < enough) return nullptr;
    asked_ = 0;
    auto lane = idle_ ? std::move(idle_) : backend_->open_async_lane();
    none_ = lane == nullptr;
    out_ = !none_;
    return lane;
}

void SoleLane::give_back(Ptr lane) {
    const std::lock_guard hold(mutex_);
    out_ = false;
    if (!stopped_) idle_ = std::move(lane);
}

void SoleLane::stop() {
    Ptr idle;
    const std::lock_guard hold(mutex_);
    stopped_ = true;
    idle.swap(idle_);
}

}  // namespace holdfast
