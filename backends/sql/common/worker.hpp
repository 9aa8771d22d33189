// A thread of the client that talks to the table for the engine. It takes all queued jobs at once,
// so that concurrent calls share a statement or a transaction. Blocking client libraries may hang
// for longer than a caller waits, so the engine continues at the deadline, and ends without the
// thread.
#pragma once
#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/signal_masked_thread.hpp"
#include "step.hpp"
#include "sweep_pace.hpp"

namespace holdfast::sql {

/// How many steps may be executed together.
inline constexpr std::size_t most_steps = 256;

/// A job for the thread: steps, or an operator's call. The engine reads the answers after `done`.
template <class Step, class Connection>
struct Job {
    explicit Job(const asio::any_io_executor& engine) : timer(engine) {}
    void add(Step s) {
        deadline = std::max(deadline, s.deadline);
        steps.push_back(std::move(s));
    }
    std::vector<Step> steps;
    std::function<void(Connection&)> ask;
    boot_clock::time_point deadline = boot_clock::time_point::min();
    asio::steady_timer timer;
    bool done = false;  ///< engine thread only
};

/// Those whose timers' owner is gone: they cannot be destroyed.
struct KeptJobs {
    std::mutex mutex;
    std::vector<std::shared_ptr<void>> all;
};
inline KeptJobs& kept_jobs = *new KeptJobs;

template <class Step, class Connection>
class Worker : public std::enable_shared_from_this<Worker<Step, Connection>> {
public:
    using Job = sql::Job<Step, Connection>;
    using Jobs = std::vector<std::shared_ptr<Job>>;

    template <class... Arguments>
    Worker(asio::any_io_executor engine, const char* name, Arguments&&... of_the_connection)
        : connection_(std::forward<Arguments>(of_the_connection)...),
          engine_(std::move(engine)),
          name_(name) {}
    virtual ~Worker() = default;
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Engine thread. True when the answers are in the job; false when the deadline passed first,
    /// for instance on a disk that hangs. The first job starts the thread.
    spi::awaitable<bool> run(std::shared_ptr<Job> job);
    /// Queues jobs that are run() elsewhere. False: the client is closing. Any thread.
    bool take_over(const Jobs& jobs);
    /// Ends the thread: waits for it a moment, and abandons it when it hangs. Jobs under way end
    /// with an error. Engine thread, after whatever makes its calls end.
    void close() noexcept;

protected:
    // --- on the thread itself
    /// Returns when something is due, or earlier. The mutex is held before and after.
    virtual void wait(std::unique_lock<std::mutex>& hold) {
        news_.wait(hold, [this] { return due(); });
    }
    /// Answers and delivers these jobs; there may be none.
    virtual void process(Jobs);
    /// Runs steps, of which each is `done` then. Those that are not when it throws are in doubt.
    virtual void run(std::vector<Step*>& steps) { run_steps(connection_, steps); }
    /// Called before the answers are delivered; takes out jobs that somebody else answers.
    virtual void answered(Jobs&) {}
    /// Deletes rows that nobody needs any more.
    virtual void sweep() = 0;
    /// Calls `f` on the engine's thread, unless the engine has ended without this thread.
    template <class F>
    void on_engine(F f) {
        const std::lock_guard hold(delivery_);
        if (!deaf_) asio::post(engine_, std::move(f));
    }

    bool due() const noexcept { return closing_ || !queue_.empty(); }

    std::mutex mutex_;
    std::condition_variable news_;
    Connection connection_;  // of the thread itself

private:
    /// Waited beyond a job's deadline, since the thread's own answer at the deadline is better.
    static constexpr milliseconds grace{50};
    /// How long close() waits for the thread.
    static constexpr milliseconds patience{150};

    void main();
    Jobs take();
    /// Removes and returns operators' calls: they may take long, and no steps should wait behind
    /// them.
    static Jobs take_questions(Jobs&);
    void deliver(Jobs);
    bool closing() {
        const std::lock_guard hold(mutex_);
        return closing_;
    }

    const asio::any_io_executor engine_;
    const char* const name_;
    Jobs queue_;
    bool closing_ = false, ended_ = false;
    std::condition_variable gone_;
    std::thread thread_;
    SweepPace pace_{64};

    std::mutex delivery_;
    bool deaf_ = false;
};

template <class Step, class Connection>
spi::awaitable<bool> Worker<Step, Connection>::run(std::shared_ptr<Job> job) {
    if (!take_over({job})) co_return false;
    job->timer.expires_after(job->deadline + grace - boot_clock::now());
    error_code ended;
    auto wait = job->timer.async_wait(asio::redirect_error(asio::use_awaitable, ended));
    co_await std::move(wait);
    co_return job->done;
}

template <class Step, class Connection>
bool Worker<Step, Connection>::take_over(const Jobs& jobs) {
    {
        const std::lock_guard hold(mutex_);
        if (closing_) return false;
        if (!thread_.joinable())
            thread_ =
                spi::signal_masked_thread([self = this->shared_from_this()] { self->main(); });
        queue_.insert(queue_.end(), jobs.begin(), jobs.end());
    }
    news_.notify_one();
    return true;
}

template <class Step, class Connection>
void Worker<Step, Connection>::close() noexcept {
    std::unique_lock hold(mutex_);
    closing_ = true;
    news_.notify_one();
    if (!thread_.joinable()) return;
    const bool ended = gone_.wait_for(hold, patience, [this] { return ended_; });
    hold.unlock();
    if (ended) return thread_.join();
    thread_.detach();
    const std::lock_guard quiet(delivery_);
    deaf_ = true;
}

template <class Step, class Connection>
void Worker<Step, Connection>::main() {
    ::pthread_setname_np(::pthread_self(), name_);
    for (;;) {
        Jobs jobs;
        {
            std::unique_lock hold(mutex_);
            wait(hold);
            if (closing_ && queue_.empty()) break;
            jobs = take();
        }
        const auto use = connection_.use();
        process(std::move(jobs));
    }
    {
        const auto use = connection_.use();
        connection_.close();
    }
    const std::lock_guard hold(mutex_);
    ended_ = true;
    gone_.notify_all();
}

template <class Step, class Connection>
typename Worker<Step, Connection>::Jobs Worker<Step, Connection>::take() {
    std::size_t steps = 0, n = 0;
    for (; n < queue_.size(); ++n) {
        steps += queue_[n]->steps.size();
        if (n > 0 && steps > most_steps && !closing_) break;
    }
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(n);
    Jobs jobs(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
    return jobs;
}

template <class Step, class Connection>
void Worker<Step, Connection>::process(Jobs jobs) {
    const Jobs questions = take_questions(jobs);
    bool released = false;
    try {
        std::vector<Step*> steps;
        for (const auto& job : jobs)
            for (Step& s : job->steps) {
                steps.push_back(&s);
                released = released || s.kind == Step::Kind::release;
            }
        if (!steps.empty()) run(steps);
    } catch (const std::exception&) {
        connection_.close();
        for (const auto& job : jobs)
            for (Step& s : job->steps)
                if (!s.done) s.unknown(no_memory());
    }
    answered(jobs);
    deliver(std::move(jobs));
    for (const auto& question : questions) {
        if (!closing()) question->ask(connection_);
        deliver(Jobs{question});
    }
    if (released && !closing() && pace_.due()) sweep();
}

template <class Step, class Connection>
typename Worker<Step, Connection>::Jobs Worker<Step, Connection>::take_questions(Jobs& jobs) {
    const auto first =
        std::stable_partition(jobs.begin(), jobs.end(), [](const auto& job) { return !job->ask; });
    Jobs questions(std::make_move_iterator(first), std::make_move_iterator(jobs.end()));
    jobs.erase(first, jobs.end());
    return questions;
}

template <class Step, class Connection>
void Worker<Step, Connection>::deliver(Jobs jobs) {
    if (jobs.empty()) return;
    const std::lock_guard hold(delivery_);
    if (deaf_) {
        const std::lock_guard guard(kept_jobs.mutex);
        kept_jobs.all.insert(kept_jobs.all.end(), jobs.begin(), jobs.end());
        return;
    }
    asio::post(engine_, [jobs = std::move(jobs)] {
        for (const auto& job : jobs) {
            job->done = true;
            job->timer.cancel();
        }
    });
}

}  // namespace holdfast::sql
