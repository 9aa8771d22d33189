// The raw floor for a hand-off by ZooKeeper: the recipe's queue of nodes, each of which watches the
// one before it, by the C client.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "measure/hand_offs.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

/// `waiters` + 1 callers in a few sessions, all on one thread: each makes a node, lists the queue,
/// watches the node before its own, lists again when that is gone, and deletes its node as soon as
/// it is the first. One thread at a time.
class ZooKeeperQueue {
public:
    /// Errors: SelfCheck.
    ZooKeeperQueue(const std::string& servers, std::size_t waiters, std::size_t sessions);
    /// Lets them go on for so long; nobody sends heartbeats before the next call. Errors:
    /// SelfCheck.
    HandOffs run_for(double seconds);

private:
    struct One {
        ZooKeeperSession* session = nullptr;
        std::string node;
    };
    void stand(One&);
    void look(One&);
    void watch(One&, const std::string& before);
    void granted(One&);
    bool went_well(const ZooKeeperAnswer&, const char* what);

    std::vector<std::unique_ptr<ZooKeeperSession>> owned_;
    std::vector<ZooKeeperSession*> sessions_;
    std::deque<One> all_;
    std::unordered_map<std::string, One*> behind_;  ///< who watches a node, by its path
    Turns turns_;
    HandOffs now_;
    std::string failure_;
};

}  // namespace holdfast::bench
