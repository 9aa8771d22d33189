// Unanswered requests for grants, so that closing can take back what they get.
#pragma once
#include <algorithm>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "holdfast/spi/backend.hpp"

namespace holdfast::redis {

/// Thread-safe: used by the engine and by lanes.
class InFlight {
public:
    /// Attempts whose requests are under way while this lives.
    class Now {
    public:
        Now(InFlight& all, std::span<spi::Attempt* const> attempts)
            : all_(all), attempts_(attempts), allowed_(all.begin(this)) {}
        ~Now() { all_.end(this); }
        Now(const Now&) = delete;
        Now& operator=(const Now&) = delete;
        /// False after stop(): nothing may be requested.
        bool allowed() const noexcept { return allowed_; }

    private:
        friend class InFlight;
        InFlight& all_;
        const std::span<spi::Attempt* const> attempts_;
        const bool allowed_;
    };

    struct Open {
        std::string name, owner;
        boot_clock::time_point deadline;
    };
    /// Forbids further requests, and returns those still unanswered.
    std::vector<Open> stop() {
        const std::lock_guard hold(mutex_);
        stopped_ = true;
        std::vector<Open> out;
        for (const Now* now : open_)
            for (const spi::Attempt* a : now->attempts_)
                out.push_back({std::string(a->name), std::string(a->owner), a->deadline});
        return out;
    }

private:
    bool begin(const Now* now) {
        const std::lock_guard hold(mutex_);
        if (!stopped_) open_.push_back(now);
        return !stopped_;
    }
    void end(const Now* now) noexcept {
        const std::lock_guard hold(mutex_);
        const auto at = std::find(open_.begin(), open_.end(), now);
        if (at == open_.end()) return;
        *at = open_.back();
        open_.pop_back();
    }

    std::mutex mutex_;
    std::vector<const Now*> open_;
    bool stopped_ = false;
};

}  // namespace holdfast::redis
