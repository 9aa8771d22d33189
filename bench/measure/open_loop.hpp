// Locks asked for at a fixed rate, whatever became of those before: the time of each counts from
// when it was meant to be asked for, so that a stall counts for each caller that it held up.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "bench.hpp"
#include "measure/arrivals.hpp"

namespace holdfast::bench {

struct OpenLoopResult {
    std::size_t cycles = 0;
    double seconds = 0;      ///< until the last one had ended
    Latency from_the_start;  ///< meant to be asked for -> release answered
    Latency from_the_call;   ///< acquire called -> release answered: what a closed loop would see
};

/// One client and so many names; a caller that comes while all of them are under way waits for the
/// first that is free. All on the thread that calls run(). Not thread-safe.
class OpenLoop {
public:
    OpenLoop(const Deployment&, std::size_t names, const std::string& prefix);
    ~OpenLoop();
    OpenLoop(const OpenLoop&) = delete;
    OpenLoop& operator=(const OpenLoop&) = delete;

    /// Starts cycles for so long and returns when the last has ended. Errors: SelfCheck when one
    /// failed, or nothing was answered for 30 s.
    OpenLoopResult run(double per_second, double seconds, std::uint64_t seed);

private:
    struct Slot {
        std::unique_ptr<Lock> lock;
        Lease lease;
        Clock::time_point meant, called;
    };
    void start_due();
    void start(Slot&, Clock::time_point meant);
    void granted(Slot&, error_code, Lease);
    void ended(Slot&, error_code, ReleaseResult);
    bool all_came() const { return failure_ || arrivals_->next() >= until_; }

    asio::io_context loop_;
    asio::steady_timer timer_{loop_};
    Client client_;
    std::deque<Slot> slots_;
    std::vector<Slot*> free_;
    std::optional<Arrivals> arrivals_;
    Clock::time_point until_;
    OpenLoopResult now_;
    error_code failure_;
    std::string failed_in_;
};

}  // namespace holdfast::bench
