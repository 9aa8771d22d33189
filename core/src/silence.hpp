// How long a caller who waits has had no answer, so that an operator is told once, and of its end.
#pragma once
#include <optional>
#include <utility>

#include "holdfast/clock.hpp"

namespace holdfast {

/// Not thread-safe.
class Silence {
public:
    /// A request that was sent then was not answered. True, once: that goes on for so long.
    bool lasts(boot_clock::time_point sent, boot_clock::time_point now, milliseconds limit) {
        if (!since_) since_ = sent;
        return now >= *since_ + limit && !std::exchange(reported_, true);
    }
    /// An answer came. True: lasts() was true before.
    bool ends() {
        since_.reset();
        return std::exchange(reported_, false);
    }

private:
    std::optional<boot_clock::time_point> since_;
    bool reported_ = false;
};

}  // namespace holdfast
