// A sink that writes events to standard error, one line each.
//
//     options.events = holdfast::log_to_stderr();
#pragma once
#include <cstdint>
#include <string>

#include "holdfast/event.hpp"

namespace holdfast {

/// Which events to write.
enum class Verbosity : std::uint8_t {
    losses,   ///< `lost` and `warning`
    trouble,  ///< `at_risk`, `recovered` and `in_doubt` as well
    all       ///< `waiting`, `acquired` and `released` as well
};

/// For ClientOptions::events: writes each chosen event as "holdfast: " and log_line(), with one
/// write to descriptor 2. Drops a line that cannot be written. When the descriptor blocks, events
/// are dropped as EventSink says. Several clients may share the sink.
[[nodiscard]] HOLDFAST_EXPORT EventSink log_to_stderr(Verbosity = Verbosity::losses);

/// The event as one line without its end, for a logger of your own. Holds no secret. Names are
/// quoted and escaped, so that they cannot control a terminal or begin a line. Thread-safe.
[[nodiscard]] HOLDFAST_EXPORT std::string log_line(const Event&);

}  // namespace holdfast
