// The raw floor for ZooKeeper: the recipe's three steps by the C client, one after the other for a
// name, and for as many names at once as are asked for.
#pragma once
#include <memory>
#include <string>

#include "measure/latency.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

class ZooKeeperFloor {
public:
    /// Connects and makes the parents of so many names. `servers`: "127.0.0.1:2181,...".
    /// Errors: SelfCheck.
    explicit ZooKeeperFloor(const std::string& servers, std::size_t names = 1);
    /// Creates an ephemeral sequential node, lists its parent, deletes it; of the first name.
    /// Errors: SelfCheck unless each is answered well and the node was alone there. After a second
    /// without a cycle it connects anew: nobody has sent heartbeats meanwhile.
    void cycle();
    /// The same with all names at once, each again and again for so long; returns how often. The
    /// session has to be a fresh one. Errors: SelfCheck.
    std::size_t run_for(double seconds);
    void connect();

private:
    void make_parents();
    void start(std::size_t name);
    void ended(const ZooKeeperAnswer&, bool well, std::size_t name);
    std::size_t run(std::size_t names, Clock::time_point until);

    std::string servers_;
    std::size_t names_;
    std::unique_ptr<ZooKeeperSession> session_;
    Clock::time_point last_{}, until_{};
    std::size_t under_way_ = 0, done_ = 0;
    bool failed_ = false;
};

}  // namespace holdfast::bench
