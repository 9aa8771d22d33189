// Callers after one lock who have other things to do: what each of them does while somebody else
// holds it is what is compared.
#pragma once
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>

#include "bench.hpp"

namespace holdfast::bench {

/// What a caller does when the lock is taken.
enum class Conflict : std::uint8_t {
    fails,  ///< is refused at once, and leaves the guarded job undone
    waits,  ///< does nothing else until it is granted
    defers  ///< does other jobs until it is granted
};

/// What happened in one stretch of time.
struct CallersResult {
    double seconds = 0;
    std::size_t grants = 0, refused = 0, other_jobs = 0;
    std::size_t two_at_once = 0;  ///< grants while another caller was inside
    std::uint64_t requests = 0;   ///< of all clients
    double client_cpu_ms = 0;     ///< of this process
    double longest_ms = 0;  ///< from asking to the grant, or to the end for one that still waits
    Latency to_grant;       ///< asked -> granted
};

/// Callers with a client each, all on one thread. A round is another job, which needs no lock, then
/// a guarded one; both are waiting for a timer, as for a disk. Not thread-safe.
class Callers {
public:
    static constexpr milliseconds other_job{5}, guarded_job{1};

    /// Every client has taken and released the lock once when it returns. Errors: SelfCheck.
    Callers(const Deployment&, std::size_t callers, Conflict, const std::string& name);
    ~Callers();
    Callers(const Callers&) = delete;
    Callers& operator=(const Callers&) = delete;

    /// Lets them go on for so long, and until something is granted (at_most_for_a_grant). Errors:
    /// SelfCheck.
    CallersResult run_for(double seconds);
    /// Ends all rounds; nothing is held or queued when it returns. Errors: SelfCheck after 30 s.
    void end();

private:
    struct Caller {
        explicit Caller(asio::io_context& loop) : other(loop), guarded(loop) {}
        std::unique_ptr<Lock> lock;
        Lease lease;
        asio::steady_timer other, guarded;
        asio::cancellation_signal stop;
        Clock::time_point asked{};
        bool asking = false, holding = false, busy = false;  ///< busy: with another job
    };
    void start_other(Caller&);
    void other_done(Caller&);
    void ask(Caller&);
    void answered(Caller&, error_code, Lease);
    void guarded_done(Caller&);
    void released(Caller&, error_code, ReleaseResult);
    std::uint64_t requests() const;

    asio::io_context loop_;
    Conflict how_;
    std::vector<Client> clients_;
    std::deque<Caller> callers_;
    std::size_t under_way_ = 0, inside_ = 0;
    bool ending_ = false;
    CallersResult now_;
    error_code failure_;
};

}  // namespace holdfast::bench
