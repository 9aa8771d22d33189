// The raw floor for ZooKeeper: the recipe's three steps, one after the other, by the C client.
#pragma once
#include <memory>
#include <string>

#include "measure/latency.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

class ZooKeeperFloor {
public:
    /// Connects and makes the lock's parent. `servers`: "127.0.0.1:2181,...". Errors: SelfCheck.
    explicit ZooKeeperFloor(const std::string& servers);
    /// Creates an ephemeral sequential node, lists its parent, deletes it. Errors: SelfCheck unless
    /// each is answered well and the node was alone there. After a second without a cycle it
    /// connects anew: nobody has sent heartbeats meanwhile.
    void cycle();

private:
    void connect();

    std::string servers_;
    std::unique_ptr<ZooKeeperSession> session_;
    Clock::time_point last_{};
};

}  // namespace holdfast::bench
