// What a client reports to its operator: one Event per change that a person would want in a log.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/fencing_token.hpp"

namespace holdfast {

/// Never carries a secret, nor a control character in `text`. `waiting` and `at_risk` are reported
/// at most once a second for one name.
struct Event {
    enum class Kind : std::uint8_t {
        waiting,    ///< busy: the caller queues or polls
        acquired,   ///< `token`, and `took` = how long the call lasted
        at_risk,    ///< a renewal was not answered; the lease is still valid for `left`
        recovered,  ///< a renewal was answered after at_risk
        lost,       ///< `reason` says why
        in_doubt,   ///< an answer never came; Holdfast is finding out
        released,   ///< answered by the server
        warning     ///< `text` only: something about the deployment, or events that were dropped
    };
    Kind kind{};
    std::string name;   ///< of the lock; empty for a warning about the client
    std::string owner;  ///< owner id of the acquisition
    FencingToken token{};
    milliseconds took{};
    milliseconds left{};
    error_code reason{};
    std::string text;
    std::uint64_t dropped = 0;  ///< of a warning: so many events were dropped in this place
};

HOLDFAST_EXPORT std::string_view to_string(Event::Kind) noexcept;

/// Called on a thread of Holdfast's user pool, one event at a time and in order; may block, must
/// not throw. Signals are blocked there, and in programs that it starts. log_to_stderr() makes one.
///
/// While it blocks, the last 4096 acquisitions, releases and waits are kept for it, the last 4096
/// warnings and signs of risk, and the last 65536 losses. Older ones are dropped, and the next
/// event is a warning that says how many.
using EventSink = std::function<void(const Event&)>;

}  // namespace holdfast
