// The two herds of ZooKeeper that articles describe: one ephemeral node that everybody watches, and
// the parent of all locks that everybody watches. Bare sessions, one for each waiter as processes
// of their own would have.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "variants/broadcast.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

/// `waiters` + 1 sessions: create the node, or watch it and try again when it is gone.
class NodeHerd {
public:
    /// Errors: SelfCheck.
    NodeHerd(const std::string& servers, std::size_t waiters);
    /// Everybody acquires, releases at once and tries again. Errors: SelfCheck.
    BroadcastResult run_for(double seconds);

private:
    struct One {
        std::unique_ptr<ZooKeeperSession> session;
    };
    void try_it(One&);
    void watch(One&);
    void release(One&);
    std::uint64_t requests() const;

    std::deque<One> all_;
    std::vector<ZooKeeperSession*> sessions_;
    Clock::time_point let_go_{};
    const One* last_ = nullptr;
    BroadcastResult now_;
};

struct ParentHerdResult {
    std::size_t releases = 0;
    std::uint64_t notifications = 0, requests = 0;  ///< at waiters of none of the released names
};

/// `waiters` sessions wait for one lock that is held and watch the children of its parent, where
/// `others` other locks are released one after the other. Errors: SelfCheck.
ParentHerdResult parent_herd(const std::string& servers, std::size_t waiters, std::size_t others);

}  // namespace holdfast::bench
