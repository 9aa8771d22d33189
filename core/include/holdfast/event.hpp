// Events for an operator: one for each change that belongs in a log.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/fencing_token.hpp"

namespace holdfast {

/// Holds no secret, and no control character in `text`. `waiting`, `at_risk` and `unreachable` are
/// each reported at most once a second for one name.
struct Event {
    enum class Kind : std::uint8_t {
        waiting,      ///< busy: the acquisition queues or polls
        acquired,     ///< `token`, and `took` = how long the call lasted
        at_risk,      ///< a renewal failed (`reason`, `text`); the lease is still valid for `left`
        recovered,    ///< a renewal was answered after at_risk
        lost,         ///< `reason` says why, `text` what the server said last
        in_doubt,     ///< a request was not answered (`reason`, `text`); Holdfast finds out
        released,     ///< the server answered the release
        warning,      ///< `text` only: about the deployment, or about events that were dropped
        unreachable,  ///< a waiter or an observer has had no answer for a request time-out, and
                      ///< waits on
        reachable,    ///< it has an answer again after unreachable
        moved         ///< other servers serve now: `text` says which, and which before
    };
    Kind kind{};
    std::string name;   ///< of the lock; empty for a move, or a warning about the client
    std::string owner;  ///< owner id of the acquisition; empty for an observer
    FencingToken token{};
    milliseconds took{};
    milliseconds left{};
    error_code reason{};
    std::string text;  ///< of a warning; else the words of the server or the backend, or empty
    std::uint64_t dropped = 0;  ///< with a warning: how many events were dropped before it
};

HOLDFAST_EXPORT std::string_view to_string(Event::Kind) noexcept;

/// Receives one event at a time, in order, on a thread of Holdfast's user pool. May block; must not
/// throw. Signals are blocked on that thread, and in programs that it starts. log_to_stderr() makes
/// a sink.
///
/// While it blocks, Holdfast keeps the last 4096 events about acquisitions, releases and waits, the
/// last 4096 about risk, doubt and warnings, and the last 65536 losses. It drops older ones; the
/// next event is a warning that says how many.
using EventSink = std::function<void(const Event&)>;

}  // namespace holdfast
