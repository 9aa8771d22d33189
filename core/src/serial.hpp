// Runs the jobs of several threads one after the other, on the thread that came first. For state
// machines whose steps never block.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <deque>
#include <memory>
#include <mutex>

namespace holdfast {

/// Thread-safe. A job may add more, which run after it.
class Serial {
public:
    using Job = boost::asio::any_completion_handler<void()>;

    static void run(const std::shared_ptr<Serial>& s, Job job) {
        const auto alive = s;  // a job may drop the last other owner
        if (!alive->enter(std::move(job))) return;
        while (alive->run_one()) {
        }
    }

private:
    /// True: no thread runs the jobs yet, so the caller does.
    bool enter(Job job) {
        const std::lock_guard hold(mutex_);
        jobs_.push_back(std::move(job));
        return !std::exchange(running_, true);
    }
    bool run_one() {
        std::unique_lock hold(mutex_);
        running_ = !jobs_.empty();
        if (!running_) return false;
        Job job(std::move(jobs_.front()));
        jobs_.pop_front();
        hold.unlock();
        std::move(job)();
        return true;
    }

    std::mutex mutex_;
    std::deque<Job> jobs_;
    bool running_ = false;
};

/// A Serial as an executor, for completion handlers.
class SerialExecutor {
public:
    explicit SerialExecutor(std::shared_ptr<Serial> serial) noexcept : serial_(std::move(serial)) {}
    template <class F>
    void execute(F&& f) const {
        Serial::run(serial_, Serial::Job(std::forward<F>(f)));
    }
    friend bool operator==(const SerialExecutor&, const SerialExecutor&) noexcept = default;

private:
    std::shared_ptr<Serial> serial_;
};

}  // namespace holdfast
