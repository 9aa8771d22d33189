// The engine of one client: its thread, its backend, and the queues that turn concurrent callers'
// requests into batches. The wait loop is in waiter.cpp, the renewal loop in grant.cpp; both only
// ever hand themselves to these queues and to the schedule.
#pragma once
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "counters.hpp"
#include "events.hpp"
#include "explain.hpp"
#include "fork_guard.hpp"
#include "holdfast/config.hpp"
#include "lanes.hpp"
#include "latch.hpp"
#include "schedule.hpp"
#include "sole_lane.hpp"
#include "user_pool.hpp"

namespace holdfast {

class Waiter;
class Grant;

/// What the configuration says about time, read once.
struct Timing {
    milliseconds ttl{10'000};
    std::optional<milliseconds> request_timeout;
    milliseconds backoff_first{20}, backoff_last{1000};

    milliseconds request(milliseconds for_ttl) const noexcept {
        return request_timeout.value_or(std::min(milliseconds(2000), for_ttl / 3));
    }
};

/// A user's handler, where it wants to run, and the work that keeps a loop there running until
/// then. Handler and work go together to the end: a loop may be gone as soon as its handler has
/// run.
template <class Signature>
struct Callback {
    asio::any_completion_handler<Signature> handler;
    asio::any_completion_executor where, work;
    explicit operator bool() const noexcept { return static_cast<bool>(handler); }
};

/// A lane in halves, and the caller's executor that waits for its answers.
struct Passage {
    SoleLane::Ptr lane;
    asio::any_io_executor where;
};

/// The same executor without what any_io_executor wraps around it: that would need the heap for
/// each copy that counts as work.
asio::any_completion_executor bare(asio::any_completion_executor) noexcept;

class Engine final : public std::enable_shared_from_this<Engine>, public spi::Sink {
public:
    static result<std::shared_ptr<Engine>> start(Chosen, const ClientOptions&, Diagnostics&);
    ~Engine() override;

    // --- facts
    const Chosen chosen;
    const Timing timing;
    spi::Backend& backend() noexcept { return *backend_; }
    bool forked() const noexcept { return fork_generation() != born_; }
    bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
    bool on_engine_thread() const noexcept { return std::this_thread::get_id() == thread_id_; }

    Counters counters;
    std::shared_ptr<Events> events;

    // --- any thread
    Lanes& lanes() noexcept { return *lanes_; }
    SoleLane& sole_lane() noexcept { return *sole_lane_; }
    /// For a call with this handler; none: the call takes the engine.
    template <class Signature>
    std::optional<Passage> passage(const asio::any_completion_handler<Signature>&);
    Schedule& schedule() noexcept { return schedule_; }
    UserPool& pool() noexcept { return pool_; }
    /// Runs on the engine thread, never inside this call; not at all once that has ended.
    template <class F>
    void post(F&& f) {
        if (ended_.load(std::memory_order_acquire)) return;
        asio::post(io_, std::forward<F>(f));
    }
    /// Where a user's handler wants to run.
    template <class Signature>
    asio::any_completion_executor executor_of(const asio::any_completion_handler<Signature>&);
    /// For one that is called later.
    template <class Signature>
    Callback<Signature> callback(asio::any_completion_handler<Signature>);
    /// Runs it where it wants to run, never on the engine thread, never inside this call.
    template <class Signature, class... Args>
    void complete(Callback<Signature>, Args... args);
    /// The same from a user's thread.
    template <class Signature, class... Args>
    void complete_later(asio::any_completion_handler<Signature>, Args... args);
    template <class Signature, class... Args>
    void complete_later(Callback<Signature>, Args... args);
    /// Starts a new waiter, or a release, together with those of other callers.
    void submit(const std::shared_ptr<Waiter>&);
    void submit(const std::shared_ptr<Grant>&);
    /// The same after a ride: at once when this is the engine thread.
    void go_on(const std::shared_ptr<Waiter>&);
    void go_on(const std::shared_ptr<Grant>&);
    /// Runs one operator's question on the engine and waits for its answer.
    template <class T, class Ask>
    result<T> ask(Ask, Diagnostics*);
    /// Gives everything up and waits for the answers, at most `grace`. Idempotent.
    void close(milliseconds grace) noexcept;

    // --- engine thread only
    void attempt(std::shared_ptr<Waiter>);
    void withdraw(std::shared_ptr<Waiter>);
    void renew(std::shared_ptr<Grant>);
    void release(std::shared_ptr<Grant>);
    /// Keeps it alive, and wake() finds it, until dismissed. The view must live in the waiter.
    void enrol(std::string_view owner, std::shared_ptr<Waiter>);
    void dismiss(std::string_view owner);
    /// Open ends: withdrawals and releases that close() waits for.
    void begin_end() noexcept { ++ends_; }
    void end_end();

    // --- spi::Sink, any thread
    void wake(std::string_view owner) override;
    void doubt(std::string_view owner) override;
    void lost(std::string_view owner, error_code) override;
    void warn(std::string text) override { events->warn(std::move(text)); }

private:
    template <class T>
    using Answer = std::pair<result<T>, std::string>;
    template <class T, class Ask>
    spi::awaitable<void> run_question(Ask, boot_clock::time_point deadline,
                                      std::shared_ptr<Latch<Answer<T>>>);
    Engine(Chosen, const ClientOptions&);
    /// What callers have asked for since the engine last looked.
    struct Inbox {
        std::vector<std::shared_ptr<Waiter>> waiters;
        std::vector<std::shared_ptr<Grant>> releases;
        bool empty() const noexcept { return waiters.empty() && releases.empty(); }
    };
    void run_thread();
    SoleLane::Ptr borrow_sole_lane();
    std::optional<Passage> passage(SoleLane::Ptr, const asio::any_completion_executor&);
    /// False: the engine has ended and will never look.
    template <class Item>
    bool put(const std::shared_ptr<Item>&, std::vector<std::shared_ptr<Item>> Inbox::*);
    void start_submitted();
    void flush_soon();
    void flush();
    void give_up_everything();
    /// On the engine thread, which cannot wait for itself.
    void close_itself();
    void finish();
    /// What is left once the engine thread runs nothing any more.
    void end(milliseconds grace);
    /// Runs what is ready.
    void drain(boot_clock::time_point until);
    spi::awaitable<void> stop_backend(std::function<void()> stopped);
    template <class Item>
    void spawn(std::vector<std::shared_ptr<Item>>&,
               spi::awaitable<void> (Engine::*verb)(std::vector<std::shared_ptr<Item>>));
    spi::awaitable<void> run_attempts(std::vector<std::shared_ptr<Waiter>>);
    spi::awaitable<void> run_withdrawals(std::vector<std::shared_ptr<Waiter>>);
    spi::awaitable<void> run_renewals(std::vector<std::shared_ptr<Grant>>);
    spi::awaitable<void> run_releases(std::vector<std::shared_ptr<Grant>>);
    template <class F>
    void on_grants(std::string_view owner, F);

    const std::uint64_t born_ = fork_generation();
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
    UserPool pool_;
    Schedule schedule_;
    std::shared_ptr<Timed> pool_watch_;
    const asio::any_completion_executor where_else_;  // a handler runs that names no executor
    std::unique_ptr<spi::Backend> backend_;
    std::unique_ptr<Lanes> lanes_;
    std::unique_ptr<SoleLane> sole_lane_;
    std::thread thread_;
    std::thread::id thread_id_;
    std::atomic<bool> closed_{false}, ended_{false};
    std::once_flag closing_;
    bool backend_stopping_ = false;              // engine thread only
    std::optional<milliseconds> closes_itself_;  // within so long; engine thread only

    std::mutex inbox_mutex_;
    Inbox inbox_;
    bool inbox_shut_ = false;

    std::vector<std::shared_ptr<Waiter>> attempts_, withdrawals_;
    std::vector<std::shared_ptr<Grant>> renewals_, releases_;
    bool flushing_ = false;
    boost::unordered_flat_map<std::string_view, std::shared_ptr<Waiter>> waiters_;
    std::atomic<std::size_t> ends_{0};  // others may look
    std::size_t verbs_ = 0;
    std::function<void()> all_ended_;
};

/// What copies of a Client, Locks and Leases share: the last one to go closes the engine.
class Handle {
public:
    Handle(std::shared_ptr<Engine> e, milliseconds g) : engine(std::move(e)), grace(g) {}
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle();
    std::shared_ptr<Engine> engine;
    const milliseconds grace;
};

template <class Signature>
asio::any_completion_executor Engine::executor_of(
    const asio::any_completion_handler<Signature>& handler) {
    return bare(asio::get_associated_executor(handler, where_else_));
}

template <class Signature>
std::optional<Passage> Engine::passage(const asio::any_completion_handler<Signature>& handler) {
    auto lane = borrow_sole_lane();
    if (!lane) return std::nullopt;
    return passage(std::move(lane), executor_of(handler));
}

template <class Signature>
Callback<Signature> Engine::callback(asio::any_completion_handler<Signature> handler) {
    auto where = executor_of(handler);
    auto work = asio::prefer(where, asio::execution::outstanding_work.tracked);
    return {std::move(handler), std::move(where), std::move(work)};
}

template <class Signature, class... Args>
void Engine::complete(Callback<Signature> callback, Args... args) {
    auto slot = asio::get_associated_cancellation_slot(callback.handler);
    const asio::any_completion_executor where = std::move(callback.where);
    auto job = [callback = std::move(callback), slot,
                args = std::make_tuple(std::move(args)...)]() mutable {
        callback.work = {};
        // On the handler's own executor, where an emission for the slot would run as well.
        slot.clear();
        std::apply(std::move(callback.handler), std::move(args));
    };
    // The system executor would run it right here, and user code never runs on the engine.
    if (where.target<asio::system_executor>() != nullptr)
        pool_.post(std::move(job));
    else if (const auto* loop = where.target<asio::io_context::executor_type>())
        asio::dispatch(*loop, std::move(job));  // the same, with one allocation less
    else
        asio::dispatch(where, std::move(job));
}

template <class Signature, class... Args>
void Engine::complete_later(asio::any_completion_handler<Signature> handler, Args... args) {
    complete_later(callback(std::move(handler)), std::move(args)...);
}

template <class Signature, class... Args>
void Engine::complete_later(Callback<Signature> callback, Args... args) {
    // A posted job may outlive the caller's handle; the engine has to be there for it.
    pool_.post([self = shared_from_this(), callback = std::move(callback),
                args = std::make_tuple(std::move(args)...)]() mutable {
        std::apply([&](auto&&... a) { self->complete(std::move(callback), std::move(a)...); },
                   std::move(args));
    });
}

template <class T, class Ask>
result<T> Engine::ask(Ask ask, Diagnostics* diagnostics) {
    if (forked()) return make_error_code(errc::forked);
    if (closed()) return make_error_code(errc::closed);
    if (on_engine_thread()) return make_error_code(errc::would_deadlock);
    auto answer = std::make_shared<Latch<Answer<T>>>();
    const auto deadline = boot_clock::now() + timing.request(timing.ttl);
    auto question = run_question<T, Ask>(std::move(ask), deadline, answer);
    asio::co_spawn(io_, std::move(question), asio::detached);
    auto got = answer->take_until(deadline + std::chrono::seconds(1));
    if (!got) got.emplace(make_error_code(errc::unavailable), std::string());
    if (!got->first && diagnostics != nullptr)
        explain(*diagnostics, chosen, got->first.error(), got->second);
    return std::move(got->first);
}

template <class T, class Ask>
spi::awaitable<void> Engine::run_question(Ask ask, boot_clock::time_point deadline,
                                          std::shared_ptr<Latch<Answer<T>>> answer) {
    const auto self = shared_from_this();
    std::string detail;
    ++verbs_;
    try {
        auto verb = ask(*backend_, deadline, detail);
        result<T> r = co_await std::move(verb);
        answer->set(Answer<T>(std::move(r), std::move(detail)));
    } catch (const std::exception& e) {
        answer->set(Answer<T>(make_error_code(errc::unavailable), e.what()));
    }
    --verbs_;
}

}  // namespace holdfast
