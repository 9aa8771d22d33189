// Three servers of ZooKeeper that agree, with clocks that can be moved, and three members of etcd.
#pragma once
#include <array>
#include <holdfast/lab/wall_clock.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "bench.hpp"

namespace holdfast::bench {

class Three {
public:
    static constexpr std::size_t count = 3;

    /// Those of the backends that the bench has servers for, started side by side. Errors:
    /// LabError.
    explicit Three(const Bench&);

    /// Their variant is "3 servers".
    const std::vector<Deployment>& deployments() const { return deployments_; }
    /// Null where there are none.
    lab::ZooKeeperServers* zookeeper() { return zookeeper_ ? &*zookeeper_ : nullptr; }
    lab::EtcdServers* etcd() { return etcd_ ? &*etcd_ : nullptr; }
    /// Of ZooKeeper's; etcd does not ask the C library, so those of its members cannot be moved.
    lab::WallClock& clock(std::size_t i) { return *clocks_[i]; }
    /// How far the clock of the server that leads is ahead of ours, by the time that it gives a new
    /// node. Errors: SelfCheck.
    milliseconds zookeeper_ahead() const;

private:
    void start_zookeeper();

    lab::TempDir folder_;
    std::array<std::unique_ptr<lab::WallClock>, count> clocks_;
    std::optional<lab::ZooKeeperServers> zookeeper_;
    std::optional<lab::EtcdServers> etcd_;
    std::vector<Deployment> deployments_;
};

}  // namespace holdfast::bench
