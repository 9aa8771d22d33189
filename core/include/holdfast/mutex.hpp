// The std Lockable family over a Lock: unique_lock, scoped_lock and lock_guard work unchanged.
#pragma once
#include <condition_variable>
#include <mutex>

#include "holdfast/lock.hpp"

namespace holdfast {

/// TimedLockable, not re-entrant.
///
/// A local gate comes first, so threads of one process queue here and the server sees one waiter.
/// lock() and the try functions throw std::system_error on faults; unlock() never throws and never
/// reports loss: watch lease().lost().
class HOLDFAST_EXPORT mutex {
public:
    explicit mutex(std::unique_ptr<Lock> lock) noexcept : lock_(std::move(lock)) {}
    /// Throws std::system_error when the lock could not be made, so that
    /// `holdfast::mutex m{client.lock("a")}` reads well.
    explicit mutex(result<std::unique_ptr<Lock>> lock);
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;

    void lock() { enter(forever); }
    bool try_lock() { return enter(milliseconds::zero()); }
    template <class R, class P>
    bool try_lock_for(std::chrono::duration<R, P> wait) {
        return enter(std::chrono::ceil<milliseconds>(wait));
    }
    template <class C, class D>
    bool try_lock_until(std::chrono::time_point<C, D> t) {
        return try_lock_for(t - C::now());
    }
    void unlock() noexcept;
    /// Only while this thread holds the mutex.
    const Lease& lease() const noexcept { return lease_; }

private:
    bool enter(milliseconds wait);
    std::unique_ptr<Lock> lock_;
    std::mutex gate_;
    std::condition_variable free_;
    bool taken_ = false;
    Lease lease_;
};

}  // namespace holdfast
