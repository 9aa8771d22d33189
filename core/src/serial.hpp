// Runs the jobs of several threads one after the other, on the thread that came first. For state
// machines whose steps never block.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <deque>
#include <memory>
#include <utility>

#include "holdfast/detail/fork_guarded.hpp"

namespace holdfast {

/// Thread-safe. A job may add more, which run after it. In a forked child none runs.
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
        const auto line = line_.access();
        if (!line) return false;
        line->jobs.push_back(std::move(job));
        return !std::exchange(line->running, true);
    }
    bool run_one() {
        auto line = line_.access();
        if (!line) return false;
        line->running = !line->jobs.empty();
        if (!line->running) return false;
        Job job(std::move(line->jobs.front()));
        line->jobs.pop_front();
        line.end();
        std::move(job)();
        return true;
    }

    struct Line {
        std::deque<Job> jobs;
        bool running = false;
    };
    ForkGuarded<Line> line_;
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
