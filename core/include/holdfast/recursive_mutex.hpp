// The interface of std::recursive_timed_mutex over a Lock. Its owners are threads.
#pragma once
#include <thread>

#include "holdfast/reentrant.hpp"

namespace holdfast {

class Client;

/// A thread that holds it may lock it again, and unlocks it as often. It excludes other threads and
/// processes.
///
/// The functions throw boost::system::system_error on faults, as result::value() does, and `lost`
/// while the thread has not unlocked a lock that was lost. unlock() blocks for at most the request
/// time-out, never throws, and never reports loss. It releases as abandoned when an exception that
/// was thrown after the lock unwinds the thread's stack. In the child of a fork() lock() throws
/// `forked`, and unlock() leaves the parent's leases alone.
class HOLDFAST_EXPORT recursive_mutex {
public:
    /// Throws boost::system::system_error (not_supported) for a semaphore.
    template <std::derived_from<Lock> L>
    explicit recursive_mutex(std::unique_ptr<L> lock)
        : recursive_mutex(std::unique_ptr<Lock>(std::move(lock))) {}
    explicit recursive_mutex(std::unique_ptr<Lock> lock);
    /// As of Client::make_lock. Throws boost::system::system_error with its errors.
    recursive_mutex(const Client& client, std::string_view name, const LockOptions& = {});
    /// Throws boost::system::system_error when the lock could not be made.
    template <std::derived_from<Lock> L>
    explicit recursive_mutex(result<std::unique_ptr<L>> lock)
        : recursive_mutex(std::unique_ptr<Lock>(std::move(lock).value())) {}
    recursive_mutex(const recursive_mutex&) = delete;
    recursive_mutex& operator=(const recursive_mutex&) = delete;
    ~recursive_mutex();

    void lock() { enter(forever); }
    /// One attempt, which blocks for at most the request time-out.
    [[nodiscard]] bool try_lock() { return enter(milliseconds::zero()); }
    template <class R, class P>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<R, P> wait) {
        return enter(whole_milliseconds(wait));
    }
    template <class C, class D>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<C, D> t) {
        return try_lock_for(time_until(t));
    }
    void unlock() noexcept;

    /// The calling thread's last lease, until its next lock or unlock; empty when it has none.
    const Lease& lease() const;

private:
    struct Threads;
    bool enter(milliseconds wait);
    Reentrant<std::thread::id> lock_;
    std::unique_ptr<Threads> threads_;
};

}  // namespace holdfast
