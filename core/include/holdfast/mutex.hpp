// A std TimedLockable over a Lock: unique_lock, scoped_lock and lock_guard work unchanged.
#pragma once
#include <concepts>
#include <memory>

#include "holdfast/lock.hpp"

namespace holdfast {

class Client;

/// TimedLockable, not re-entrant: a thread that locks it twice deadlocks.
///
/// Threads that share the object queue inside the process, so the server sees one waiter. lock()
/// and the try functions throw boost::system::system_error on faults, as result::value() does.
/// unlock() blocks for at most the request time-out, never throws, and never reports loss: watch
/// lease().lost(). It releases as abandoned when an exception that was thrown after lock() unwinds
/// this thread's stack. In the child of a fork() lock() throws `forked`, and unlock() leaves the
/// parent's lease alone.
class HOLDFAST_EXPORT mutex {
public:
    /// Takes any Lock, also a decorator of your own.
    template <std::derived_from<Lock> L>
    explicit mutex(std::unique_ptr<L> lock) : mutex(std::unique_ptr<Lock>(std::move(lock))) {}
    explicit mutex(std::unique_ptr<Lock> lock);
    /// As of Client::make_lock. Throws boost::system::system_error with its errors.
    mutex(const Client& client, std::string_view name, const LockOptions& = {});
    /// Throws boost::system::system_error when the lock could not be made, so that you can write
    /// `holdfast::mutex m{client.make_lock("a")}`.
    template <std::derived_from<Lock> L>
    explicit mutex(result<std::unique_ptr<L>> lock)
        : mutex(std::unique_ptr<Lock>(std::move(lock).value())) {}
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    ~mutex();

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
    /// The lease of this lock; only while the calling thread holds the mutex.
    const Lease& lease() const noexcept { return lease_; }

private:
    struct Gate;
    bool enter(milliseconds wait);
    bool acquire(milliseconds wait);
    std::unique_ptr<Lock> lock_;
    std::unique_ptr<Gate> gate_;
    Lease lease_;
};

}  // namespace holdfast
