// A blocking call waits with it for the engine: one value, set once.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>

#include "holdfast/clock.hpp"

namespace holdfast {

/// Thread-safe. Both sides hold it by shared_ptr.
template <class T>
class OneShot {
public:
    void set(T value) {
        {
            const std::lock_guard hold(mutex_);
            value_.emplace(std::move(value));
        }
        set_.notify_all();
    }
    T take() {
        std::unique_lock hold(mutex_);
        set_.wait(hold, [&] { return value_.has_value(); });
        return std::move(*value_);
    }

    /// Nullopt when `cap` came first.
    std::optional<T> take_until(boot_clock::time_point cap) {
        std::unique_lock hold(mutex_);
        set_.wait_for(hold, cap - boot_clock::now(), [&] { return value_.has_value(); });
        return std::move(value_);
    }

private:
    std::mutex mutex_;
    std::condition_variable set_;
    std::optional<T> value_;
};

}  // namespace holdfast
