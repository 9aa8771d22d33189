// Many locks acquired and released at once by one caller through the asynchronous interface.
#pragma once
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "bench.hpp"
#include "measure/wants.hpp"

namespace holdfast::bench {

/// `slots` locks, with different names unless they are all of `one_name`, each acquired and
/// released again and again by callbacks on the thread that calls run_*(). Between calls nothing is
/// held. Not thread-safe.
class InFlight {
public:
    InFlight(const Deployment&, std::size_t slots, const std::string& prefix,
             const Wants& = a_mutex, bool one_name = false);
    ~InFlight();
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;

    using OnGrant = std::function<void(const Lease&)>;
    /// Starts `cycles` cycles and returns when all have ended. Errors: SelfCheck when one failed.
    std::size_t run_cycles(std::size_t cycles, OnGrant = {});
    /// Starts cycles for so long, returns how many ended.
    std::size_t run_for(double seconds);
    /// Whole cycles, from the call of acquire to the answer of release, are added here.
    std::shared_ptr<Latency> latency = std::make_shared<Latency>();

private:
    struct Slot {
        std::unique_ptr<Lock> lock;
        Lease lease;
        Clock::time_point started;
    };
    std::size_t run();
    void start(Slot&, Clock::time_point now);
    void over();
    void granted(Slot&, error_code, Lease);
    void ended(Slot&, error_code, ReleaseResult);

    const AcquireOptions how_;
    asio::io_context loop_;
    Client client_;
    std::deque<Slot> slots_;
    std::size_t to_start_ = 0, under_way_ = 0, done_ = 0;
    Clock::time_point until_;
    error_code failure_;
    std::string failed_in_;
    OnGrant on_grant_;
};

}  // namespace holdfast::bench
