// Where user code runs: completions without an executor of their own, lost() callbacks, events.
// Threads start on demand and end when idle, so one slow callback delays nobody else's.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <functional>
#include <memory>

#include "holdfast/clock.hpp"

namespace holdfast {

/// Thread-safe. When no job was taken up for `patience` though one waits, another thread starts, up
/// to 64; each further one takes twice as long, so that a busy machine does not look like a blocked
/// thread.
class UserPool {
public:
    using Job = boost::asio::any_completion_handler<void()>;
    static constexpr milliseconds patience{5};

    /// `look_later` must call check() on this pool about `patience` later, from any thread.
    explicit UserPool(std::function<void()> look_later);
    ~UserPool();
    UserPool(const UserPool&) = delete;
    UserPool& operator=(const UserPool&) = delete;

    void post(Job);
    void check();
    /// No thread starts any more; queued jobs still run. Waits at most `cap` for the threads to
    /// end, unless called on one of them.
    void stop(milliseconds cap);

    struct State;

private:
    std::shared_ptr<State> state_;
};

/// A minimal executor over the pool, for handlers that bring none.
class PoolExecutor {
public:
    explicit PoolExecutor(UserPool& pool) noexcept : pool_(&pool) {}
    template <class F>
    void execute(F&& f) const {
        pool_->post(UserPool::Job(std::forward<F>(f)));
    }
    friend bool operator==(const PoolExecutor&, const PoolExecutor&) noexcept = default;

private:
    UserPool* pool_;
};

}  // namespace holdfast
