// All deadlines of one client (renewals, losses, waits, looks, retries) in one ordered set behind
// one timer descriptor. On CLOCK_BOOTTIME, so that they are right after the machine slept.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/intrusive/set.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "holdfast/clock.hpp"

namespace holdfast {

/// Something that fires at a time. Owned by shared_ptr; fire() runs on the engine thread. If one
/// thread may set it while another drops the last reference, its destructor must cancel it.
class Timed : public std::enable_shared_from_this<Timed>,
              public boost::intrusive::set_base_hook<
                  boost::intrusive::link_mode<boost::intrusive::safe_link>> {
public:
    virtual ~Timed() = default;
    virtual void fire(boot_clock::time_point now) = 0;

private:
    friend class Schedule;
    friend bool operator<(const Timed& a, const Timed& b) noexcept { return a.due_ < b.due_; }
    boot_clock::time_point due_{};
    std::atomic<bool> scheduled_{false};  // written under the schedule's mutex
};

/// Thread-safe: setting from another thread arms the timer without waking the engine.
class Schedule {
public:
    explicit Schedule(boost::asio::io_context&);
    ~Schedule();
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;

    void set(Timed&, boot_clock::time_point due);
    void cancel(Timed&) noexcept;
    /// Nothing fires any more. Call it only while the engine thread is not in here; others may be.
    void stop();

private:
    void take_out(Timed&) noexcept;
    void arm(boot_clock::time_point due) noexcept;
    void wait();
    void run();

    std::mutex mutex_;
    boost::intrusive::multiset<Timed, boost::intrusive::constant_time_size<false>> set_;
    boot_clock::time_point armed_ = boot_clock::time_point::max();
    boost::asio::posix::stream_descriptor timer_;
};

}  // namespace holdfast
