// Runs what several threads bring one after the other, on the thread of whoever came first: for
// state machines whose steps block nowhere.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <deque>
#include <memory>
#include <mutex>

namespace holdfast {

/// Thread-safe. What is run may add more, which runs after it.
class Serial {
public:
    using Job = boost::asio::any_completion_handler<void()>;

    static void run(const std::shared_ptr<Serial>& s, Job job) {
        const auto alive = s;  // what runs may let go of the last other owner
        if (!alive->enter(std::move(job))) return;
        while (alive->run_one()) {
        }
    }

private:
    /// True: nobody runs them yet, so the caller does.
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

/// The same as an executor, for completion handlers.
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
