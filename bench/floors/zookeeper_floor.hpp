// The raw floor for ZooKeeper: the recipe's three steps, one after the other, by the C client.
#pragma once
#include <string>

#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

class ZooKeeperFloor {
public:
    /// Connects and makes the lock's parent. `servers`: "127.0.0.1:2181,...". Errors: SelfCheck.
    explicit ZooKeeperFloor(const std::string& servers);
    /// Creates an ephemeral sequential node, lists its parent, deletes it. Errors: SelfCheck unless
    /// each is answered well and the node was alone there.
    void cycle();

private:
    ZooKeeperSession session_;
};

}  // namespace holdfast::bench
