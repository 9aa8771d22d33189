// Events on their way to the user's sink: in order, rate-limited, never on the engine thread.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "holdfast/event.hpp"
#include "user_pool.hpp"

namespace holdfast {

/// Thread-safe. Costs one branch when there is no sink.
class Events : public std::enable_shared_from_this<Events> {
public:
    Events(EventSink sink, UserPool& pool) : sink_(std::move(sink)), pool_(&pool) {}
    bool wanted() const noexcept { return static_cast<bool>(sink_); }
    void tell(Event);
    /// Told once per text.
    void warn(std::string text);

private:
    bool too_soon(const Event&);
    void deliver();

    const EventSink sink_;
    UserPool* pool_;
    std::mutex mutex_;
    std::deque<Event> queue_;
    bool delivering_ = false;
    std::unordered_map<std::string, boot_clock::time_point> last_;
    std::set<std::string> warned_;
};

}  // namespace holdfast
