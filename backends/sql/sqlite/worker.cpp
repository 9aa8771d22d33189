#include "worker.hpp"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "clocks.hpp"
#include "holdfast/spi/quiet_thread.hpp"

namespace holdfast::sqlite {
namespace {

constexpr std::size_t most_steps = 256;
constexpr std::chrono::nanoseconds shortest_pause = milliseconds(1),
                                   longest_pause = milliseconds(20);
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

void Worker::kick() noexcept {
    {
        const std::lock_guard hold(mutex_);
        if (waiting_ == 0) return;
        kicked_ = true;
    }
    news_.notify_one();
}

void Worker::close() noexcept {
    place_->closing = true;
    std::unique_lock hold(mutex_);
    closing_ = true;
    news_.notify_one();
    if (!thread_.joinable()) return;
    const bool ended = gone_.wait_for(hold, milliseconds(100), [this] { return ended_; });
    hold.unlock();
    if (ended) return thread_.join();
    thread_.detach();
    const std::lock_guard quiet(delivery_);
    deaf_ = true;
}

Worker::Jobs Worker::next() {
    std::unique_lock hold(mutex_);
    const auto ready = [this] { return closing_ || kicked_ || !queue_.empty(); };
    waiting_ = watch_.size();
    if (watch_.empty()) {
        news_.wait(hold, ready);
    } else {
        // Looks get rarer with the time that nothing happened: a release is noticed within a
        // twentieth of the time it was waited for.
        auto pause =
            std::clamp((boot_clock::now() - last_news_) / 20, shortest_pause, longest_pause);
        pause = std::max(pause, pause_);
        const std::chrono::nanoseconds expiry =
            std::chrono::microseconds(watch_.next_expiry() - boot_us());
        pause = std::max(std::min(pause, expiry), shortest_pause / 4);
        news_.wait_for(hold, pause, ready);
    }
    kicked_ = false;
    Jobs taken;
    std::size_t steps = 0, n = 0;
    for (; n < queue_.size() && (n == 0 || steps + queue_[n]->steps.size() <= most_steps); ++n)
        steps += queue_[n]->steps.size();
    taken.assign(std::make_move_iterator(queue_.begin()),
                 std::make_move_iterator(queue_.begin() + static_cast<std::ptrdiff_t>(n)));
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(n));
    return taken;
}

void Worker::main() {
    for (;;) {
        Jobs jobs = next();
        {
            const std::lock_guard hold(mutex_);
            if (closing_) {
                jobs.insert(jobs.end(), queue_.begin(), queue_.end());
                queue_.clear();
            }
        }
        if (!jobs.empty()) process(jobs);
        if (!watch_.empty() && !place_->closing) look_around();
        const std::lock_guard hold(mutex_);
        if (!closing_ || !queue_.empty()) continue;
        connection_.close();
        ended_ = true;
        gone_.notify_all();
        return;
    }
}

/// Attempts at names that somebody else surely holds need no write lock. Once another step does
/// need it, its transaction answers the rest as well.
void Worker::answer_waiters(std::vector<Step*>& steps) {
    const auto attempts = [](const Step* s) { return s->kind == Step::Kind::attempt; };
    if (std::none_of(steps.begin(), steps.end(), attempts)) return;
    if (!connection_.is_open() || !connection_.still_there()) return;
    watch_.refresh(connection_);
    for (Step* s : steps)
        if (attempts(s)) watch_.answers(*s);
    Row row;
    for (Step* s : steps) {
        if (s->done) continue;
        if (!attempts(s) || look(connection_, s->key, row) != SQLITE_OK) return;
        if (row.state != Row::State::held || row.owner == s->owner || !row.plain) return;
        if (row.format != layout_format) return;
        s->outcome = spi::Attempt::Busy{look_again(row.left_us), false};
        s->done = true;
        watch_.held(s->key, row.owner, row.left_us);
    }
}

void Worker::process(Jobs& jobs) {
    std::vector<Step*> steps, open;
    for (const auto& job : jobs)
        for (Step& s : job->steps)
            steps.push_back(&s);
    if (!place_->closing) answer_waiters(steps);
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(open),
                 [](const Step* s) { return !s->done; });
    if (!open.empty()) run_steps(connection_, open);
    bool freed = false, released = false;
    for (const Step* s : steps) {
        if (watch_.record(*s)) last_news_ = boot_clock::now();
        freed = freed || s->freed;
        released = released || s->kind == Step::Kind::release;
    }
    if (connection_.is_open() && connection_.file() != joined_) {
        joined_ = connection_.file();
        watch_.forget();
        join_neighbours(joined_, shared_from_this());
    }
    for (const auto& job : jobs) {
        if (!job->ask) continue;
        job->ask(connection_);
        watch_.forget();
    }
    deliver(std::move(jobs));
    if (freed && connection_.is_open()) kick_neighbours(connection_.file());
    if (released && !place_->closing && --until_sweep_ == 0) {
        until_sweep_ = 1024;
        sweep(connection_, boot_clock::now() + milliseconds(100));
    }
}

void Worker::look_around() {
    const auto began = boot_clock::now();
    std::vector<std::string> owners;
    if (connection_.is_open() && connection_.still_there()) {
        const auto before = watch_.next_expiry();
        watch_.refresh(connection_);
        if (watch_.next_expiry() != before) last_news_ = began;
        owners = watch_.look_around(connection_);
    }
    // Looks of very many names must not fill the thread's time.
    pause_ = (boot_clock::now() - began) * 4;
    if (owners.empty()) return;
    last_news_ = boot_clock::now();
    wake(std::move(owners));
}

void Worker::deliver(Jobs jobs) {
    const std::lock_guard hold(delivery_);
    if (deaf_) {
        new Jobs(std::move(jobs));  // their timers' owner is gone, so they cannot be destroyed
        return;
    }
    asio::post(context_.engine, [jobs = std::move(jobs)] {
        for (const auto& job : jobs) {
            job->done = true;
            job->timer.cancel();
        }
    });
}

void Worker::wake(std::vector<std::string> owners) {
    const std::lock_guard hold(delivery_);
    if (deaf_) return;
    asio::post(context_.engine, [sink = &context_.sink, owners = std::move(owners)] {
        for (const std::string& owner : owners)
            sink->wake(owner);
    });
}

}  // namespace holdfast::sqlite
