// A user's handler from initiation to completion: runs where the handler wants to, never on the
// engine thread, and is destroyed with its loop if that is destroyed first.
#pragma once
#include <atomic>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/intrusive/list.hpp>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "callback_pool.hpp"
#include "holdfast/detail/fork_generation.hpp"

namespace holdfast {

namespace asio = boost::asio;

/// The same executor without its any_io_executor, which would need the heap for each copy that
/// counts as work.
asio::any_completion_executor bare(asio::any_completion_executor) noexcept;

/// Counts as work of its loop for as long as it lives. Composed operations name such executors.
template <class Executor>
using Tracked =
    typename asio::require_result<Executor, asio::execution::outstanding_work_t::tracked_t>::type;

/// Calls `f` with the executor as its own type if that is one of these.
template <class... Types, class Executor, class F>
bool if_one_of(const Executor& e, F f) {
    const auto one = [&](const auto* same) { return same != nullptr && (f(*same), true); };
    return (one(e.template target<Types>()) || ...);
}
/// Calls `f` with the executor as its own type (and, for a strand, with the executor inside) if it
/// is known to queue what is posted. False: an unknown executor, which may run user code on the
/// calling thread.
template <class Executor, class F>
bool if_loop(const Executor& e, F f) {
    using Loop = asio::io_context::executor_type;
    using Threads = asio::thread_pool::executor_type;
    return if_one_of<Tracked<Loop>, Loop, Tracked<Threads>, Threads>(e, f);
}
template <class F>
bool if_it_queues(const asio::any_completion_executor& e, F f) {
    using Loop = asio::io_context::executor_type;
    using Threads = asio::thread_pool::executor_type;
    if (if_loop(e, [&](const auto& loop) { f(loop, loop); })) return true;
    if (const auto* s = e.target<asio::strand<asio::any_io_executor>>())
        return if_loop(s->get_inner_executor(), [&](const auto& loop) { f(*s, loop); });
    return if_one_of<asio::strand<Loop>, asio::strand<Threads>, asio::strand<Tracked<Loop>>,
                     asio::strand<Tracked<Threads>>>(
        e, [&](const auto& s) { f(s, s.get_inner_executor()); });
}

/// Notices the end of a loop (an Asio execution_context) for as long as handlers wait to run there.
/// A loop should outlive the calls that complete on it. One that does not destroys their handlers
/// without running them, as it does those of Asio's own operations; nothing is posted to it any
/// more.
class LoopEnd {
public:
    class Waiting : public boost::intrusive::list_base_hook<> {
    protected:
        ~Waiting() = default;

    private:
        friend class LoopEnd;
        /// Returns what must not outlive the loop, for the caller to destroy. Called under the
        /// mutex.
        virtual CallbackPool::Job remains() = 0;
    };

    /// The LoopEnd of the loop behind this executor; null: unknown.
    static std::shared_ptr<LoopEnd> of(const asio::any_completion_executor&);

    std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
    // --- under the lock
    bool came() const noexcept { return came_; }
    void add(Waiting& w) noexcept { waiting_.push_back(w); }
    void remove(Waiting& w) noexcept {
        if (w.is_linked()) waiting_.erase(waiting_.iterator_to(w));
    }
    // ---
    /// The loop is being destroyed.
    void come();

private:
    const std::uint64_t born_ = fork_generation();
    std::mutex mutex_;
    std::atomic<bool> came_{false};  // written under the mutex
    boost::intrusive::list<Waiting, boost::intrusive::constant_time_size<false>> waiting_;
};

/// Is notified when a handler ended with its loop.
class Orphan {
public:
    /// Called under a mutex of the loop's: must neither destroy the callback nor complete one of
    /// that loop. Returns what keeps this object alive.
    virtual std::shared_ptr<void> orphaned() = 0;

protected:
    ~Orphan() = default;
};
/// A result for orphaned() that cancels `alive` once the mutex is free: cancel() may have to run
/// other callers' jobs, which complete on any loop.
template <class T>
std::shared_ptr<void> to_be_cancelled(std::shared_ptr<T> alive) {
    if (!alive) return nullptr;
    T* const it = alive.get();
    return std::shared_ptr<void>(it, [alive = std::move(alive)](void*) { alive->cancel(); });
}

/// A user's handler and its executor. Counts as work of a loop until the handler is in the loop's
/// queue, since a loop may be gone as soon as its handler has run. One thread at a time, except at
/// the end of its loop.
template <class Signature>
class Callback final : private LoopEnd::Waiting {
public:
    using Handler = asio::any_completion_handler<Signature>;

    Callback() = default;
    /// `default_executor`: runs a handler that names no executor.
    Callback(Handler handler, const asio::any_completion_executor& default_executor,
             Orphan* owner = nullptr)
        : handler_(std::move(handler)), owner_(owner) {
        if (!handler_) return;
        where_ = asio::get_associated_executor(handler_, default_executor);
        if (where_.target<PoolExecutor>() != nullptr) return;  // no loop, and no work of one
        where_ = asio::prefer(bare(std::move(where_)), asio::execution::outstanding_work.tracked);
        loop_ = LoopEnd::of(where_);
        if (!loop_) return;
        const auto hold = loop_->lock();
        if (!loop_->came()) loop_->add(*this);
    }
    ~Callback() {
        if (!loop_) return;
        const auto hold = loop_->lock();
        loop_->remove(*this);
    }
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;

    /// Calls `f`, which may use what the handler owns, unless the handler has ended with its loop;
    /// it cannot do so meanwhile. Under a mutex of the loop's. Before complete().
    template <class F>
    void while_alive(F f) {
        std::unique_lock<std::mutex> hold;
        if (loop_) hold = loop_->lock();
        if (!loop_ || !loop_->came()) f();
    }

    /// Runs the handler once on its executor: never on the engine thread, never inside this call,
    /// and not at all when its loop is gone. `pool` (a CallbackPool or OwnThreads) runs handlers
    /// without a loop.
    template <class Pool, class... Args>
    void complete(Pool& pool, Args... args) {
        const auto loop = std::move(loop_);
        std::unique_lock<std::mutex> hold;
        if (loop) {
            hold = loop->lock();
            loop->remove(*this);
        }
        if (!handler_ || (loop && loop->came())) return;
        auto slot = asio::get_associated_cancellation_slot(handler_);
        auto where = std::move(where_);
        auto job = [handler = std::move(handler_), slot,
                    args = std::make_tuple(std::move(args)...)]() mutable {
            // On the handler's own executor, where an emission for the slot would run, too.
            slot.clear();
            std::apply(std::move(handler), std::move(args));
        };
        // Under the mutex, so that the loop still exists.
        if (loop)
            if_it_queues(where, [&](const auto& e, const auto&) { asio::post(e, std::move(job)); });
        else if (where.target<PoolExecutor>() || where.target<asio::system_executor>())
            pool.post(std::move(job));
        else
            pool.post([work = std::move(where), job = std::move(job)]() mutable {
                run_there(std::move(work), std::move(job));
            });
    }

private:
    /// May run user code right here, on a thread for it. The work ends before the job begins.
    template <class Job>
    static void run_there(asio::any_completion_executor work, Job job) {
        const auto where = asio::prefer(work, asio::execution::outstanding_work.untracked);
        asio::dispatch(where, [work = std::move(work), job = std::move(job)]() mutable {
            work = {};
            job();
        });
    }
    CallbackPool::Job remains() override {
        // Its owner ends first: the handler may own what the operation works with.
        struct Remains {
            Handler handler;
            asio::any_completion_executor where;
            std::shared_ptr<void> owner;  // declared last, so destroyed first
            void operator()() {}
        };
        auto owner = owner_ != nullptr ? owner_->orphaned() : nullptr;
        return Remains{std::move(handler_), std::move(where_), std::move(owner)};
    }

    Handler handler_;
    asio::any_completion_executor where_;
    std::shared_ptr<LoopEnd> loop_;  // its mutex guards all of it
    Orphan* owner_ = nullptr;
};

}  // namespace holdfast
