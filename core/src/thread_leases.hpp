// The leases of each thread that has locked a std adapter, the last one on top.
#pragma once
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "holdfast/lock.hpp"
#include "holdfast/spi/fork_generation.hpp"

namespace holdfast {

/// Thread-safe.
class ThreadLeases {
public:
    bool forked() const noexcept { return fork_generation() != born_; }
    void push(Lease lease) {
        const std::lock_guard hold(mutex_);
        of_[std::this_thread::get_id()].push_back({std::move(lease), std::uncaught_exceptions()});
    }
    const Lease& top() const {
        const std::lock_guard hold(mutex_);
        const auto mine = of_.find(std::this_thread::get_id());
        static const Lease none;
        return mine == of_.end() ? none : mine->second.back().lease;
    }
    /// Releases the calling thread's last lease; does nothing when it has none.
    void pop() noexcept {
        if (forked()) return;  // the leases are the parent's
        Locked last;
        {
            const std::lock_guard hold(mutex_);
            const auto mine = of_.find(std::this_thread::get_id());
            if (mine == of_.end()) return;
            last = std::move(mine->second.back());
            mine->second.pop_back();
            if (mine->second.empty()) of_.erase(mine);
        }
        const bool unwinding = std::uncaught_exceptions() > last.exceptions;
        last.lease.release(unwinding ? Outcome::abandoned : Outcome::done);
    }

private:
    struct Locked {
        Lease lease;
        int exceptions = 0;  ///< in flight when the thread locked
    };
    const std::uint64_t born_ = fork_generation();
    mutable std::mutex mutex_;
    std::map<std::thread::id, std::vector<Locked>> of_;
};

/// False when another client holds the lock. Throws on faults.
inline bool was_granted(const result<Lease>& lease, const char* adapter) {
    if (lease) return true;
    if (lease.error() == errc::contended || lease.error() == errc::timed_out) return false;
    throw boost::system::system_error(lease.error(), adapter);
}

inline std::unique_ptr<Lock> of_kind(std::unique_ptr<Lock> lock, Kind kind, const char* adapter) {
    if (lock->kind() != kind)
        throw boost::system::system_error(make_error_code(errc::not_supported), adapter);
    return lock;
}

}  // namespace holdfast
