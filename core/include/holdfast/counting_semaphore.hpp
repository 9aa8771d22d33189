// The interface of std::counting_semaphore over a Lock of Kind::semaphore.
#pragma once
#include <concepts>
#include <memory>

#include "holdfast/lock.hpp"

namespace holdfast {

/// Permits belong to the object, not to a thread: any thread may release them. Thread-safe. The
/// functions throw boost::system::system_error on faults, as result::value() does. In the child of
/// a fork() acquire() and release() throw `forked`, and the parent's permits are left alone.
class HOLDFAST_EXPORT counting_semaphore {
public:
    /// Throws boost::system::system_error (not_supported) when the lock is no Kind::semaphore.
    template <std::derived_from<Lock> L>
    explicit counting_semaphore(std::unique_ptr<L> lock)
        : counting_semaphore(std::unique_ptr<Lock>(std::move(lock))) {}
    explicit counting_semaphore(std::unique_ptr<Lock> lock);
    /// Throws boost::system::system_error when the lock could not be made.
    template <std::derived_from<Lock> L>
    explicit counting_semaphore(result<std::unique_ptr<L>> lock)
        : counting_semaphore(std::unique_ptr<Lock>(std::move(lock).value())) {}
    counting_semaphore(const counting_semaphore&) = delete;
    counting_semaphore& operator=(const counting_semaphore&) = delete;
    /// Releases what is held, without waiting for the answers.
    ~counting_semaphore();

    void acquire() { enter(forever); }
    /// One attempt, which blocks for at most the request time-out.
    [[nodiscard]] bool try_acquire() { return enter(milliseconds::zero()); }
    template <class R, class P>
    [[nodiscard]] bool try_acquire_for(std::chrono::duration<R, P> wait) {
        return enter(whole_milliseconds(wait));
    }
    template <class C, class D>
    [[nodiscard]] bool try_acquire_until(std::chrono::time_point<C, D> t) {
        return try_acquire_for(t - C::now());
    }
    /// Releases the oldest permits. Blocks for at most the request time-out for each. Throws
    /// boost::system::system_error (not_held), and releases none, when the object holds fewer. A
    /// lost permit counts as held until it is released.
    void release(std::size_t permits = 1);
    /// How many permits are held and valid now; in the child of a fork() none.
    std::size_t held() const noexcept;

private:
    struct Permits;
    bool enter(milliseconds wait);
    std::unique_ptr<Lock> lock_;
    std::unique_ptr<Permits> permits_;
};

}  // namespace holdfast
