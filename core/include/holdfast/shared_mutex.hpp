// A std SharedTimedLockable over a Lock: std::shared_lock and std::unique_lock work unchanged.
#pragma once
#include <concepts>
#include <memory>

#include "holdfast/lock.hpp"

namespace holdfast {

class Client;

/// Not re-entrant. Each lock_shared() acquires a lease of its own, kept for the calling thread: to
/// join another reader of the process would pass a waiting writer.
///
/// The functions throw boost::system::system_error on faults, as result::value() does. unlock() and
/// unlock_shared() block for at most the request time-out, never throw, and never report loss. They
/// release as abandoned when an exception that was thrown after the lock unwinds the thread's
/// stack. In the child of a fork() locking throws `forked`, and unlocking leaves the parent's
/// leases alone.
class HOLDFAST_EXPORT shared_mutex {
public:
    /// Throws boost::system::system_error (not_supported) when the lock is no Kind::shared_mutex.
    template <std::derived_from<Lock> L>
    explicit shared_mutex(std::unique_ptr<L> lock)
        : shared_mutex(std::unique_ptr<Lock>(std::move(lock))) {}
    explicit shared_mutex(std::unique_ptr<Lock> lock);
    /// As of Client::make_lock. `kind` counts as shared_mutex. Throws boost::system::system_error
    /// with its errors.
    shared_mutex(const Client& client, std::string_view name, const LockOptions& = {});
    /// Throws boost::system::system_error when the lock could not be made.
    template <std::derived_from<Lock> L>
    explicit shared_mutex(result<std::unique_ptr<L>> lock)
        : shared_mutex(std::unique_ptr<Lock>(std::move(lock).value())) {}
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;
    ~shared_mutex();

    void lock() { enter(Mode::exclusive, forever); }
    /// One attempt, which blocks for at most the request time-out.
    [[nodiscard]] bool try_lock() { return enter(Mode::exclusive, milliseconds::zero()); }
    template <class R, class P>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<R, P> wait) {
        return enter(Mode::exclusive, whole_milliseconds(wait));
    }
    template <class C, class D>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<C, D> t) {
        return try_lock_for(time_until(t));
    }
    void unlock() noexcept { leave(); }

    void lock_shared() { enter(Mode::shared, forever); }
    /// One attempt, which blocks for at most the request time-out.
    [[nodiscard]] bool try_lock_shared() { return enter(Mode::shared, milliseconds::zero()); }
    template <class R, class P>
    [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<R, P> wait) {
        return enter(Mode::shared, whole_milliseconds(wait));
    }
    template <class C, class D>
    [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<C, D> t) {
        return try_lock_shared_for(time_until(t));
    }
    void unlock_shared() noexcept { leave(); }

    /// The calling thread's last lease, until its next lock or unlock; empty when it has none.
    const Lease& lease() const;

private:
    struct Threads;
    bool enter(Mode, milliseconds wait);
    void leave() noexcept;
    std::unique_ptr<Lock> lock_;
    std::unique_ptr<Threads> threads_;
};

}  // namespace holdfast
