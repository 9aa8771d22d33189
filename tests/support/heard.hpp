// An event sink that keeps what a client reports.
#pragma once
#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "holdfast/event.hpp"

namespace test_support {

/// Thread-safe. Outlives the client.
class Heard {
public:
    holdfast::EventSink sink() {
        return [this](const holdfast::Event& e) {
            const std::lock_guard hold(mutex_);
            all_.push_back(e);
        };
    }
    std::vector<holdfast::Event> of(holdfast::Event::Kind kind) const {
        const std::lock_guard hold(mutex_);
        std::vector<holdfast::Event> found;
        for (const holdfast::Event& e : all_)
            if (e.kind == kind) found.push_back(e);
        return found;
    }
    /// Whether the server has answered somebody who waits. Before, the time-out of one request
    /// bounds the whole call; from here on it lasts as long as its caller said.
    bool waits() const { return !of(holdfast::Event::Kind::waiting).empty(); }
    /// Whether the text of an event has these words.
    bool says(const std::string& words) const {
        const std::lock_guard hold(mutex_);
        return std::any_of(all_.begin(), all_.end(), [&](const holdfast::Event& e) {
            return e.text.find(words) != std::string::npos;
        });
    }

private:
    mutable std::mutex mutex_;
    std::vector<holdfast::Event> all_;
};

}  // namespace test_support
