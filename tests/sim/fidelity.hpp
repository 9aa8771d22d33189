// What fidelity compares: each answers the exit status.
#pragma once
#include <cstddef>
#include <cstdint>
#include <holdfast/lab/reply.hpp>
#include <string>

namespace holdfast::sim {

/// A reply of the simulated Redis server that begins there, read as the lab reads the real one's.
lab::Reply read_reply(const std::string& bytes, std::size_t& at);
/// Where an error arose in a script is told in words of each server's own.
void leave_out_places(lab::Reply&);

/// Random commands to the servers of a Redis Cluster while a slot moves from one to another, and to
/// one that misses the others.
int compare_redis_cluster(std::uint64_t seed, std::uint64_t requests);
/// Random requests to one member of etcd, and watches there.
int compare_etcd(std::uint64_t seed, std::uint64_t requests);
/// Random requests to one ZooKeeper server.
int compare_zookeeper(std::uint64_t seed, std::uint64_t requests);
/// Scripts of sessions and changes of leader on three of them; `all`: also those that take long.
int compare_zookeeper_scripts(std::uint64_t seed, bool all);

}  // namespace holdfast::sim
