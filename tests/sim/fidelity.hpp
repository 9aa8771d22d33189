// What fidelity compares: each answers the exit status.
#pragma once
#include <cstdint>

namespace holdfast::sim {

/// Random requests to one member of etcd, and watches there.
int compare_etcd(std::uint64_t seed, std::uint64_t requests);
/// Random requests to one ZooKeeper server.
int compare_zookeeper(std::uint64_t seed, std::uint64_t requests);
/// Scripts of sessions and changes of leader on three of them; `all`: also those that take long.
int compare_zookeeper_scripts(std::uint64_t seed, bool all);

}  // namespace holdfast::sim
