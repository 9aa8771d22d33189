// The two herds of ZooKeeper that articles describe: one ephemeral node that everybody watches, and
// the parent of all locks that everybody watches. Bare sessions, one for each waiter as processes
// of their own would have.
#pragma once
#include <deque>
#include <functional>
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

    std::deque<One> all_;
    std::vector<ZooKeeperSession*> sessions_;
    Turns turns_;
    BroadcastResult now_;
};

/// A herd at one node of which some wait elsewhere: a holder and `survivors` sessions, each of
/// which takes the lock once.
class HerdBurst {
public:
    struct Result {
        std::vector<double> served_ms;  ///< each survivor, in the order of grants
        std::uint64_t requests = 0;     ///< of all survivors
    };
    /// The lock is held, and every survivor watches it. Errors: SelfCheck.
    HerdBurst(const std::string& servers, const std::string& node, std::size_t survivors);
    /// Heartbeats.
    void turn();
    /// The holder releases; everybody who is granted releases at once. Times are from `start`.
    /// Errors: SelfCheck.
    Result play(Clock::time_point start);

private:
    void try_it(ZooKeeperSession&);
    void watch(ZooKeeperSession&);

    std::string node_;
    std::deque<std::unique_ptr<ZooKeeperSession>> all_;  ///< the holder first
    std::vector<ZooKeeperSession*> sessions_;
    std::size_t watching_ = 0, released_ = 0;
    Clock::time_point start_{};
    Result now_;
};

/// Watches the node, calls `watching`, and does no more until it is killed. Errors: SelfCheck.
[[noreturn]] void watch_until_killed(const std::string& servers, const std::string& node,
                                     const std::function<void()>& watching);

struct ParentHerdResult {
    std::size_t releases = 0;
    std::uint64_t notifications = 0, requests = 0;  ///< at waiters of none of the released names
};

/// `waiters` sessions wait for one lock that is held and watch the children of its parent, where
/// `others` other locks are released one after the other. Errors: SelfCheck.
ParentHerdResult parent_herd(const std::string& servers, std::size_t waiters, std::size_t others);

}  // namespace holdfast::bench
