#include "lanes.hpp"

namespace holdfast {

Lanes::Loan Lanes::borrow() {
    {
        const std::lock_guard hold(mutex_);
        if (none_ || stopped_ || out_ >= most) return {};
        ++out_;
        if (!idle_.empty()) {
            auto lane = std::move(idle_.back());
            idle_.pop_back();
            return {this, std::move(lane)};
        }
    }
    auto lane = backend_->open_lane();
    if (!lane) {
        const std::lock_guard hold(mutex_);
        none_ = true;
        --out_;
        return {};
    }
    return {this, std::move(lane)};
}

void Lanes::give_back(std::unique_ptr<spi::Lane> lane) {
    const std::lock_guard hold(mutex_);
    --out_;
    if (!stopped_) idle_.push_back(std::move(lane));
}

void Lanes::stop() {
    std::vector<std::unique_ptr<spi::Lane>> idle;
    const std::lock_guard hold(mutex_);
    stopped_ = true;
    idle.swap(idle_);
}

}  // namespace holdfast
