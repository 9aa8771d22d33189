// Which server is the primary, and how sure that is: the rule, without sockets or a clock.
// tests/models/sentinel explores it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "holdfast/clock.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::redis {

/// What one Sentinel has answered last.
struct Named {
    spi::Endpoint primary;         ///< by an address or a host name
    std::uint64_t epoch = 0;       ///< of the configuration: grows with each failover
    boot_clock::time_point asked;  ///< a moment before the question was sent
};

struct Agreement {
    /// Named with the highest epoch; of several, by the most Sentinels. Null: nobody names one.
    const Named* best = nullptr;
    /// The latest moment since which a majority of the listed Sentinels was asked and has named
    /// `best`, with its epoch; the beginning of time: they have not.
    boot_clock::time_point confirmed = boot_clock::time_point::min();
};

/// `last`: a place for each Sentinel that the URL lists, empty for one that has not answered
/// lately.
Agreement agree(std::span<const std::optional<Named>> last);

}  // namespace holdfast::redis
