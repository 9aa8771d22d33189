// Many callers after one lock: each acquires, releases at once or after a while, and queues again.
#pragma once
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>

#include "bench.hpp"
#include "measure/hand_offs.hpp"
#include "measure/wants.hpp"

namespace holdfast::bench {

struct CrowdResult : HandOffs {
    std::size_t to_the_oldest = 0;  ///< grants that went to the caller that had asked first
    std::size_t two_at_once = 0;    ///< grants beside somebody who must be alone, or who must;
                                    ///< says nothing where permits are wanted
    struct Share {
        bool reads = false;
        std::size_t grants = 0;
        double longest_ms = 0;  ///< from asking to the grant, or to the end of the run
    };
    std::vector<Share> shares;  ///< of each caller
};

/// `waiters` + 1 callers in several clients of one process, all on one thread. Not thread-safe.
class Crowd {
public:
    /// Each stays `inside` for so long before it releases. So many of 100 want `to_read`, the
    /// others `to_write`; of none, all want what `others` says.
    Crowd(const Deployment&, std::size_t waiters, const std::string& name, milliseconds inside = {},
          std::size_t readers = 0, const Wants& others = a_mutex);
    ~Crowd();
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    /// Lets them go on for so long, and until something is granted (at_most_for_a_grant).
    /// Everybody waits again afterwards. Errors: SelfCheck.
    CrowdResult run_for(double seconds);
    /// Ends all waits; nothing is held or queued when it returns. Errors: SelfCheck after 30 s.
    void end();

private:
    struct Caller {
        explicit Caller(asio::io_context& loop) : done(loop) {}
        std::unique_ptr<Lock> lock;
        AcquireOptions how;
        Lease lease;
        asio::cancellation_signal stop;
        asio::steady_timer done;  ///< with what it does inside
        bool reads() const { return how.mode == Mode::shared; }
        std::uint64_t asked = 0;  ///< how many had asked before
        Clock::time_point asked_at{};
        bool waits = false;
        CrowdResult::Share share;
    };
    void start(Caller&);
    void granted(Caller&, error_code, Lease);
    void leave(Caller&);
    void released(Caller&, error_code, ReleaseResult);
    std::uint64_t requests() const;

    asio::io_context loop_;
    std::vector<Client> clients_;
    std::deque<Caller> callers_;
    std::deque<std::uint64_t> asking_;  ///< tickets of waiting callers, oldest first
    std::uint64_t asked_ = 0;
    std::size_t under_way_ = 0, inside_ = 0, writers_inside_ = 0;
    milliseconds stays_;
    bool ending_ = false;
    Turns turns_;
    CrowdResult now_;
    error_code failure_;
};

/// Whether number `i` of `all` reads, where so many of 100 do: both are scattered.
bool is_reader(std::size_t i, std::size_t all, std::size_t readers);

/// Clients that a crowd of so many is spread over.
std::size_t clients_for(std::size_t waiters);

}  // namespace holdfast::bench
