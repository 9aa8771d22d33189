// What can make a set of servers under Sentinels unsafe or slow for locks.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <vector>

#include "../shared.hpp"
#include "holdfast/examination.hpp"
#include "holdfast/spi/check.hpp"
#include "sentinels.hpp"

namespace holdfast::redis {

/// For the primary; one Sentinel; one replica; all of them.
const std::vector<spi::Check>& split_checks();
const std::vector<spi::Check>& sentinel_checks();
const std::vector<spi::Check>& replica_checks();
const std::vector<spi::Check>& set_checks();

/// Adds what is found of the Sentinels, and of the replicas that the primary has reported.
/// Connects to each of these.
asio::awaitable<void> examine_set(asio::any_io_executor, const Shared&, Sentinels&, tls::Context*,
                                  const spi::Facts& primary, boot_clock::time_point deadline,
                                  std::vector<Finding>& into);

}  // namespace holdfast::redis
