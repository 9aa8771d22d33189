// Data shared by all clients of one process.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "holdfast/detail/fork_generation.hpp"

namespace holdfast::sqlite {

/// A forked child begins with its own: its copy of the parent's has a mutex that a thread of the
/// parent may hold, and pointers that only the parent may use. Never destroyed, since a thread may
/// outlive the destructors of static objects.
template <class T>
T& of_process() {
    struct Owned {
        const std::uint64_t process = fork_generation();
        T value;
    };
    static constinit std::atomic<Owned*> current{nullptr};
    Owned* mine = current.load();
    while (mine == nullptr || mine->process != fork_generation()) {
        Owned* const parents = mine;
        auto fresh = std::make_unique<Owned>();
        const std::lock_guard in_order(fresh->value.mutex);
        if (!current.compare_exchange_strong(mine, fresh.get())) continue;
        mine = fresh.release();
        if constexpr (requires { mine->value.inherit(parents->value); })
            if (parents != nullptr) mine->value.inherit(parents->value);
    }
    return mine->value;
}

}  // namespace holdfast::sqlite
