// A ready-made sink for events: lines on standard error.
//
//     options.events = holdfast::log_to_stderr();
#pragma once
#include <cstdint>
#include <string>

#include "holdfast/event.hpp"

namespace holdfast {

/// Which events are written.
enum class Verbosity : std::uint8_t {
    losses,   ///< `lost` and `warning`
    trouble,  ///< `at_risk`, `recovered` and `in_doubt` as well
    all       ///< `waiting`, `acquired` and `released` as well
};

/// For ClientOptions::events: writes each such event as "holdfast: " and log_line(), with one write
/// to descriptor 2. A line that cannot be written is dropped; a descriptor that blocks has the
/// consequences that EventSink names. Several clients may share the sink.
[[nodiscard]] HOLDFAST_EXPORT EventSink log_to_stderr(Verbosity = Verbosity::losses);

/// What happened, in one line without its end, for a logger of your own. It holds no secret; names
/// are quoted and escaped, so that they cannot write to a terminal or begin a line. Thread-safe.
[[nodiscard]] HOLDFAST_EXPORT std::string log_line(const Event&);

}  // namespace holdfast
