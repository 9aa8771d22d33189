// Threads for user code: completions whose handlers name no executor, lost() callbacks, events.
// They start on demand and end when idle, so a slow callback delays no other.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <functional>
#include <memory>

#include "holdfast/clock.hpp"

namespace holdfast {

/// Thread-safe. Starts another thread, up to 64, when a job waits and none was begun for
/// `patience`. The time doubles with each thread, so that a busy machine does not look like a
/// blocked thread.
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
    /// No thread starts any more. Queued jobs still run, on this thread if there is no other. Waits
    /// at most `cap` for the threads to end, unless called on one of them.
    void stop(milliseconds cap);

    struct State;

private:
    std::shared_ptr<State> state_;
};

/// A minimal executor over the pool, for handlers that name none.
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
