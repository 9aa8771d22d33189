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
class CallbackPool {
public:
    using Job = boost::asio::any_completion_handler<void()>;
    static constexpr milliseconds patience{5};

    /// `look_later` must call check() on this pool about `patience` later, from any thread.
    explicit CallbackPool(std::function<void()> look_later);
    ~CallbackPool();
    CallbackPool(const CallbackPool&) = delete;
    CallbackPool& operator=(const CallbackPool&) = delete;

    void post(Job);
    void check();
    /// No thread starts any more; queued jobs still run, on this thread where there is no other.
    /// Waits at most `cap` for the threads to end, unless called on one of them.
    void stop(milliseconds cap);

    struct State;

private:
    std::shared_ptr<State> state_;
};

/// A minimal executor over the pool, for handlers that bring none.
class PoolExecutor {
public:
    explicit PoolExecutor(CallbackPool& pool) noexcept : pool_(&pool) {}
    template <class F>
    void execute(F&& f) const {
        pool_->post(CallbackPool::Job(std::forward<F>(f)));
    }
    friend bool operator==(const PoolExecutor&, const PoolExecutor&) noexcept = default;

private:
    CallbackPool* pool_;
};

}  // namespace holdfast
