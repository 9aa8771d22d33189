// Delivers events to the user's sink: one at a time, in order, never on the engine thread.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "callback_pool.hpp"
#include "holdfast/event.hpp"

namespace holdfast {

/// Thread-safe. Costs one branch without a sink. A blocked sink costs bounded memory: each rank
/// keeps a number of events, then drops and counts its oldest. A loss is worth more than any number
/// of acquisitions, so the ranks do not displace each other.
class Events : public std::enable_shared_from_this<Events> {
public:
    enum Rank : std::size_t { routine, trouble, loss, ranks };
    static constexpr std::array<std::size_t, ranks> most{4'096, 4'096, 65'536};

    Events(EventSink sink, CallbackPool& pool) : sink_(std::move(sink)), pool_(&pool) {}
    bool wanted() const noexcept { return static_cast<bool>(sink_); }
    void tell(Event);
    /// Reports each text once, as far as the last texts are remembered.
    void warn(std::string text);

private:
    struct Waiting {
        std::uint64_t number;
        Event event;
    };
    bool too_soon(const Event&);
    void queue(Event);
    bool next(Event&);
    void deliver();

    const EventSink sink_;
    CallbackPool* pool_;
    std::mutex mutex_;
    std::array<std::deque<Waiting>, ranks> queues_;  // in order of their numbers
    std::array<std::uint64_t, ranks> dropped_{};     // since the last warning about them
    std::uint64_t last_number_ = 0;
    bool delivering_ = false;
    std::unordered_map<std::string, boot_clock::time_point> last_;
    std::set<std::string> warned_;
};

}  // namespace holdfast
