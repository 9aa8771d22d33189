#include "worker.hpp"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "holdfast/spi/quiet_thread.hpp"

namespace holdfast::postgresql {
namespace {

constexpr std::size_t most_steps = 256;
/// Past a job's deadline: the thread's own answer at the deadline is the better one.
constexpr milliseconds grace{50};

}  // namespace

spi::awaitable<bool> Worker::run(std::shared_ptr<Job> job) {
    {
        const std::lock_guard hold(mutex_);
        if (closing_) co_return false;
        if (!thread_.joinable()) start();
        queue_.push_back(job);
    }
    news_.notify_one();
    job->timer.expires_after(job->deadline + grace - boot_clock::now());
    error_code ended;
    auto wait = job->timer.async_wait(asio::redirect_error(asio::use_awaitable, ended));
    co_await std::move(wait);
    co_return job->done;
}

void Worker::start() {
    thread_ = spi::quiet_thread([self = shared_from_this()] { self->main(); });
}

void Worker::close() noexcept {
    std::unique_lock hold(mutex_);
    closing_ = true;
    news_.notify_one();
    if (!thread_.joinable()) return;
    const bool ended = gone_.wait_for(hold, milliseconds(150), [this] { return ended_; });
    hold.unlock();
    if (ended) return thread_.join();
    thread_.detach();
    const std::lock_guard quiet(delivery_);
    deaf_ = true;
}

void Worker::main() {
    ::pthread_setname_np(::pthread_self(), "holdfast-pg");
    Connection connection(shared_, Connection::Resolve::yes);
    for (;;) {
        Jobs jobs;
        {
            std::unique_lock hold(mutex_);
            news_.wait(hold, [this] { return closing_ || !queue_.empty(); });
            if (queue_.empty()) break;
            std::size_t steps = 0, n = 0;
            for (; n < queue_.size(); ++n) {
                steps += queue_[n]->steps.size();
                if (n > 0 && steps > most_steps && !closing_) break;
            }
            const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(n);
            jobs.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
            queue_.erase(queue_.begin(), end);
        }
        process(connection, jobs);
    }
    connection.close();
    const std::lock_guard hold(mutex_);
    ended_ = true;
    gone_.notify_all();
}

void Worker::process(Connection& c, Jobs& jobs) {
    std::vector<Step*> steps;
    for (const auto& job : jobs)
        for (Step& s : job->steps)
            steps.push_back(&s);
    try {
        if (!steps.empty()) run_steps(c, steps);
    } catch (const std::exception&) {
        // Out of memory in the middle: what became of the steps is for the engine to find out.
        c.close();
        for (Step* s : steps)
            if (!s->done) s->outcome = spi::Attempt::Doubt{make_error_code(errc::unavailable)};
    }
    const bool released = std::any_of(steps.begin(), steps.end(),
                                      [](const Step* s) { return s->kind == Step::Kind::release; });
    for (const auto& job : jobs)
        if (job->ask) job->ask(c);
    deliver(std::move(jobs));
    if (released && --until_sweep_ == 0) {
        until_sweep_ = 1024;
        sweep(c, boot_clock::now() + std::chrono::seconds(1), sweep_cursor_);
    }
}

void Worker::deliver(Jobs jobs) {
    const std::lock_guard hold(delivery_);
    if (deaf_) {
        new Jobs(std::move(jobs));  // their timers' owner is gone, so they cannot be destroyed
        return;
    }
    asio::post(engine_, [jobs = std::move(jobs)] {
        for (const auto& job : jobs) {
            job->done = true;
            job->timer.cancel();
        }
    });
}

}  // namespace holdfast::postgresql
