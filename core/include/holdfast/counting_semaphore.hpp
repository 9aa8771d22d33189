// The interface of std::counting_semaphore over a Lock of Kind::semaphore.
#pragma once
#include <concepts>
#include <memory>

#include "holdfast/lock.hpp"

namespace holdfast {

class Client;

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
    /// As of Client::make_lock with this `limit`, and `kind` a semaphore. Throws
    /// boost::system::system_error with its errors.
    counting_semaphore(const Client& client, std::string_view name, std::uint32_t limit,
                       LockOptions = {});
    /// Throws boost::system::system_error when the lock could not be made.
    template <std::derived_from<Lock> L>
    explicit counting_semaphore(result<std::unique_ptr<L>> lock)
        : counting_semaphore(std::unique_ptr<Lock>(std::move(lock).value())) {}
    counting_semaphore(const counting_semaphore&) = delete;
    counting_semaphore& operator=(const counting_semaphore&) = delete;
    /// Releases what is held, without waiting for the answers.
    ~counting_semaphore();

    /// Acquires these permits together: 1 to 256, and at most the limit.
    void acquire(std::uint32_t permits = 1) { enter(forever, permits); }
    /// One attempt, which blocks for at most the request time-out.
    [[nodiscard]] bool try_acquire(std::uint32_t permits = 1) {
        return enter(milliseconds::zero(), permits);
    }
    template <class R, class P>
    [[nodiscard]] bool try_acquire_for(std::chrono::duration<R, P> wait,
                                       std::uint32_t permits = 1) {
        return enter(whole_milliseconds(wait), permits);
    }
    template <class C, class D>
    [[nodiscard]] bool try_acquire_until(std::chrono::time_point<C, D> t,
                                         std::uint32_t permits = 1) {
        return enter(time_until(t), permits);
    }
    /// Releases permits: lost ones first, then the oldest. The server frees permits that were
    /// acquired together when the last of them is released. Blocks for at most the request time-out
    /// for each acquisition. Throws boost::system::system_error (not_held), and releases none, when
    /// the object holds fewer. A lost permit counts as held until it is released.
    void release(std::size_t permits = 1);
    /// How many permits are held and valid now; in the child of a fork() none.
    std::size_t held() const noexcept;
    /// Requested when one of the permits is lost, also of those that are acquired later. Which
    /// thread uses the lost one is the program's to say, so stop what uses any, or release one. A
    /// call after the lost ones were released returns a new token. Callbacks run as those of
    /// Lease::lost(), and may release. In the child of a fork() it is requested.
    std::stop_token lost();

private:
    struct Permits;
    bool enter(milliseconds wait, std::uint32_t permits);
    std::unique_ptr<Lock> lock_;
    std::unique_ptr<Permits> permits_;
};

}  // namespace holdfast
