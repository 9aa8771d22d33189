// The raw floor for a hand-off by etcd: the queue of keys of etcd's own client library, each of
// which watches the one before it, by bare gRPC.
#pragma once
#include <cstdint>
#include <deque>
#include <holdfast/lab/grpc_client.hpp>
#include <string>
#include <unordered_map>

#include "measure/hand_offs.hpp"

namespace holdfast::etcd::rpc {
class RangeRequest;
class WatchResponse;
}  // namespace holdfast::etcd::rpc

namespace holdfast::bench {

/// `waiters` + 1 callers on one connection and one thread: each writes a key, reads in the same
/// request which one is before it, watches that, looks again when it is gone, and deletes its own
/// key as soon as that is the first. One thread at a time.
///
/// Source: etcd's client library, package concurrency, Mutex.
class EtcdQueue {
public:
    /// Errors: SelfCheck, as of run_for(); LabError when the server does not answer.
    EtcdQueue(std::uint16_t port, std::size_t waiters);
    /// Lets them go on for so long.
    HandOffs run_for(double seconds);

private:
    struct One {
        std::string key;
        std::int64_t made = 0;  ///< the revision of its key
        enum class Step : std::uint8_t { entering, looking, leaving };
        Step step = Step::entering;  ///< what was asked last
    };
    void enter(One&);
    void watch(One&, const std::string& before, std::int64_t since);
    void look(One&);
    void granted(One&);
    void answered(lab::GrpcConnection::Call);
    void heard(const etcd::rpc::WatchResponse&);
    void ask(One&, One::Step, const std::string& path, const std::string& message);

    lab::GrpcConnection connection_;
    lab::GrpcConnection::Call events_ = 0;
    std::int64_t lease_ = 0;
    std::deque<One> all_;
    std::unordered_map<lab::GrpcConnection::Call, One*> asked_;
    std::deque<One*>
        unnumbered_;  ///< their watches are asked for; the server numbers them in this order
    std::unordered_map<std::int64_t, One*> watches_;
    Turns turns_;
    HandOffs now_;
};

}  // namespace holdfast::bench
