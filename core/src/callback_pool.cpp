#include "callback_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "holdfast/spi/signal_masked_thread.hpp"

namespace holdfast {
namespace {

constexpr std::size_t max_threads = 64;
constexpr std::chrono::seconds idle_end{2};
thread_local const CallbackPool::State* current = nullptr;

}  // namespace

struct CallbackPool::State : std::enable_shared_from_this<CallbackPool::State> {
    std::mutex mutex;
    std::condition_variable work, ended;
    std::deque<Job> queue;
    boot_clock::time_point last_taken{};
    std::size_t threads = 0, idle = 0;
    bool stopping = false, looking = false;
    std::function<void()> look_later;

    bool start_thread() {  // under the mutex
        ++threads;
        try {
            spi::signal_masked_thread([self = shared_from_this()] { self->run(); }).detach();
        } catch (...) {
            --threads;  // the machine is out of threads: the ones there are go on
            return false;
        }
        return true;
    }

    void run() {
        current = this;
        std::unique_lock hold(mutex);
        for (;;) {
            if (queue.empty()) {
                if (stopping) break;
                ++idle;
                const bool called =
                    work.wait_for(hold, idle_end, [&] { return !queue.empty() || stopping; });
                --idle;
                if (queue.empty() && (!called || stopping)) break;
                continue;
            }
            Job job = std::move(queue.front());
            queue.pop_front();
            last_taken = boot_clock::now();
            hold.unlock();
            std::move(job)();
            job = nullptr;
            hold.lock();
        }
        --threads;
        current = nullptr;
        ended.notify_all();
    }
};

CallbackPool::CallbackPool(std::function<void()> look_later) : state_(std::make_shared<State>()) {
    state_->look_later = std::move(look_later);
}

CallbackPool::~CallbackPool() {
    stop(milliseconds::zero());
}

void CallbackPool::post(Job job) {
    bool look = false;
    {
        const std::lock_guard hold(state_->mutex);
        if (state_->queue.empty()) state_->last_taken = boot_clock::now();
        state_->queue.push_back(std::move(job));
        const bool enough =
            state_->threads == 0 ? state_->start_thread() : state_->idle >= state_->queue.size();
        if (!enough && !state_->looking && !state_->stopping) look = state_->looking = true;
    }
    state_->work.notify_one();
    if (look) state_->look_later();
}

void CallbackPool::check() {
    bool look = false;
    {
        const std::lock_guard hold(state_->mutex);
        state_->looking = false;
        if (state_->queue.empty() || state_->stopping) return;
        const auto enough = patience * (1U << std::min<std::size_t>(state_->threads, 7U));
        if (state_->threads == 0) {
            state_->start_thread();
        } else if (boot_clock::now() - state_->last_taken >= enough && state_->idle == 0 &&
                   state_->threads < max_threads) {
            state_->last_taken = boot_clock::now();
            state_->start_thread();
        }
        look = state_->looking = true;
    }
    if (look) state_->look_later();
}

void CallbackPool::stop(milliseconds cap) {
    std::unique_lock hold(state_->mutex);
    state_->stopping = true;
    state_->work.notify_all();
    if (!state_->queue.empty() && state_->threads == 0 && !state_->start_thread()) {
        ++state_->threads;  // this one: nobody else ever will
        hold.unlock();
        state_->run();
        hold.lock();
    }
    const std::size_t mine = current == state_.get() ? 1 : 0;
    state_->ended.wait_for(hold, cap, [&] { return state_->threads <= mine; });
}

}  // namespace holdfast
