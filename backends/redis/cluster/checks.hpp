// What can make a Redis Cluster unsafe or slow for locks, beside what can make each of its servers
// so.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <vector>

#include "holdfast/spi/check.hpp"
#include "members.hpp"

namespace holdfast::redis {

/// For each primary; all of them.
const std::vector<spi::Check>& node_checks();
const std::vector<spi::Check>& cluster_checks();

/// Adds what is found of the primaries, and of their slots. An error: none of them answered.
asio::awaitable<spi::Failure> examine_cluster(const std::vector<Node*>& primaries, const Members&,
                                              const spi::Settings&, boot_clock::time_point deadline,
                                              std::vector<Finding>& into);

}  // namespace holdfast::redis
