// A mutex together with what it guards, for objects that a forked child has a copy of.
#pragma once
#include <memory>
#include <mutex>

#include "holdfast/detail/fork_generation.hpp"

namespace holdfast {

/// Knows in which process it was made. A fork may find a thread inside: in the child the mutex then
/// stays locked for ever, and what it guards half changed. So a child has no access to it, and
/// leaves it undestroyed. Thread-safe.
template <class T>
class ForkGuarded {
public:
    /// While it lives, no other thread has access. False in a forked child.
    template <class Guarded>
    class Access {
    public:
        explicit operator bool() const noexcept { return guarded_ != nullptr; }
        Guarded* operator->() const noexcept { return guarded_; }
        Guarded& operator*() const noexcept { return *guarded_; }
        /// For a condition variable to wait with.
        std::unique_lock<std::mutex>& hold() noexcept { return hold_; }
        /// Ends it early.
        void end() {
            guarded_ = nullptr;
            hold_.unlock();
        }

    private:
        friend class ForkGuarded;
        Access() = default;
        Access(std::mutex& mutex, Guarded& guarded) : hold_(mutex), guarded_(&guarded) {}
        std::unique_lock<std::mutex> hold_;
        Guarded* guarded_ = nullptr;
    };

    ForkGuarded() : guarded_() {}
    ForkGuarded(const ForkGuarded&) = delete;
    ForkGuarded& operator=(const ForkGuarded&) = delete;
    ~ForkGuarded() {
        if (!forked()) std::destroy_at(&guarded_);
    }

    bool forked() const noexcept { return fork_generation() != born_; }
    [[nodiscard]] Access<T> access() {
        return forked() ? Access<T>() : Access<T>(mutex_, guarded_);
    }
    [[nodiscard]] Access<const T> access() const {
        return forked() ? Access<const T>() : Access<const T>(mutex_, guarded_);
    }

private:
    const std::uint64_t born_ = fork_generation();
    mutable std::mutex mutex_;
    union {
        T guarded_;
    };
};

}  // namespace holdfast
