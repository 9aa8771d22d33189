// The leases of each thread that has locked a std adapter, the last one on top.
#pragma once
#include <exception>
#include <map>
#include <thread>
#include <vector>

#include "holdfast/detail/fork_guarded.hpp"
#include "holdfast/lease.hpp"

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

}  // namespace holdfast
