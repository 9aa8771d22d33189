#include "events.hpp"

namespace holdfast {
namespace {

constexpr std::chrono::seconds at_most_every{1};
constexpr std::size_t remembered = 10'000;

}  // namespace

bool Events::too_soon(const Event& e) {
    if (e.kind != Event::Kind::waiting && e.kind != Event::Kind::at_risk) return false;
    if (last_.size() > remembered) last_.clear();
    const auto now = boot_clock::now();
    auto& last = last_[std::string(to_string(e.kind)) + ' ' + e.name];
    if (last != boot_clock::time_point{} && now - last < at_most_every) return true;
    last = now;
    return false;
}

void Events::tell(Event e) {
    if (!wanted()) return;
    {
        const std::lock_guard hold(mutex_);
        if (too_soon(e)) return;
        queue_.push_back(std::move(e));
        if (delivering_) return;
        delivering_ = true;
    }
    pool_->post([self = shared_from_this()] { self->deliver(); });
}

void Events::warn(std::string text) {
    if (!wanted()) return;
    {
        const std::lock_guard hold(mutex_);
        if (!warned_.insert(text).second) return;
    }
    Event e;
    e.kind = Event::Kind::warning;
    e.text = std::move(text);
    tell(std::move(e));
}

void Events::deliver() {
    std::unique_lock hold(mutex_);
    while (!queue_.empty()) {
        const Event e = std::move(queue_.front());
        queue_.pop_front();
        hold.unlock();
        sink_(e);
        hold.lock();
    }
    delivering_ = false;
}

}  // namespace holdfast
