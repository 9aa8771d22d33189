// How long a waiter that polls keeps its place at a server from one poll to the next.
#pragma once
#include <algorithm>
#include <chrono>

#include "holdfast/clock.hpp"

namespace holdfast::resp {

/// One waiter's. A mark must outlast the way of the next poll to the server, or a client that
/// comes in between passes, and a distant waiter starves.
class PollMark {
public:
    /// So long a waiter polls without being ahead of anybody.
    static constexpr milliseconds after{1000};
    /// Between an answer and the next poll there is at most so much.
    static constexpr milliseconds pause{100};

    void answered(boot_clock::duration took) noexcept {
        const milliseconds most{1000};
        longest_ = std::max(longest_, std::min(std::chrono::ceil<milliseconds>(took), most));
    }
    /// How long the server keeps the mark after a poll.
    milliseconds lasts() const noexcept { return 3 * pause + 2 * longest_; }

private:
    milliseconds longest_{0};
};

}  // namespace holdfast::resp
