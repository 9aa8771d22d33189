// How long a grant or renewal counts whose server Sentinels have named: tests/models/sentinel.
#pragma once
#include "protocol/operations.hpp"

namespace holdfast::redis {

/// `since`: when a majority was asked last that has confirmed the server, or the beginning of time.
/// False: so long ago that it does not count.
inline bool count_from(Operation& granted, boot_clock::time_point since,
                       boot_clock::time_point now) {
    if (since == boot_clock::time_point::min() || since + granted.ttl / 2 < now) return false;
    granted.counts_from(since);
    return true;
}

}  // namespace holdfast::redis
