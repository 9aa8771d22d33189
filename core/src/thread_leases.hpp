// The leases of each thread that has locked a std adapter, the last one on top.
#pragma once
#include <exception>
#include <map>
#include <thread>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/spi/fork_guarded.hpp"

namespace holdfast {

/// Thread-safe. A forked child has none: the leases are the parent's.
class ThreadLeases {
public:
    void push(Lease lease) {
        if (const auto all = of_.access())
            (*all)[std::this_thread::get_id()].push_back(
                {std::move(lease), std::uncaught_exceptions()});
    }
    const Lease& top() const {
        const auto all = of_.access();
        if (!all) return none_;
        const auto mine = all->find(std::this_thread::get_id());
        return mine == all->end() ? none_ : mine->second.back().lease;
    }
    /// Releases the calling thread's last lease; does nothing when it has none.
    void pop() noexcept {
        Locked last;
        {
            const auto all = of_.access();
            if (!all) return;
            const auto mine = all->find(std::this_thread::get_id());
            if (mine == all->end()) return;
            last = std::move(mine->second.back());
            mine->second.pop_back();
            if (mine->second.empty()) all->erase(mine);
        }
        const bool unwinding = std::uncaught_exceptions() > last.exceptions;
        last.lease.release(unwinding ? Outcome::abandoned : Outcome::done);
    }

private:
    struct Locked {
        Lease lease;
        int exceptions = 0;  ///< in flight when the thread locked
    };
    ForkGuarded<std::map<std::thread::id, std::vector<Locked>>> of_;
    const Lease none_{};
};

/// False when another client holds the lock. Throws on faults.
inline bool was_granted(const result<Lease>& lease, const char* adapter) {
    if (lease) return true;
    if (lease.error() == errc::contended || lease.error() == errc::timed_out) return false;
    throw boost::system::system_error(lease.error(), adapter);
}

/// Throws what Client::make_lock answers instead of a Lock.
inline std::unique_ptr<Lock> made_by(const Client& client, std::string_view name,
                                     const LockOptions& options, const std::string& adapter) {
    Diagnostics why;
    auto lock = client.make_lock(name, options, &why);
    if (!lock)
        throw boost::system::system_error(
            lock.error(), why.entries.empty() ? adapter : adapter + ": " + why.text());
    return std::move(*lock);
}

inline LockOptions with_kind(LockOptions options, Kind kind, std::uint32_t limit = 1) {
    options.kind = kind;
    options.limit = limit;
    return options;
}

inline std::unique_ptr<Lock> of_kind(std::unique_ptr<Lock> lock, Kind kind, const char* adapter) {
    if (lock->kind() != kind)
        throw boost::system::system_error(make_error_code(errc::not_supported), adapter);
    return lock;
}

}  // namespace holdfast
