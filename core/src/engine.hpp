// The engine of one client: its thread, its backend, and the queues that turn concurrent requests
// into batches. The wait loop is in acquisition.cpp, the renewal loop in lease_impl.cpp; both only
// add themselves to these queues and to the schedule.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "batches.hpp"
#include "completion.hpp"
#include "counters.hpp"
#include "events.hpp"
#include "explain.hpp"
#include "holdfast/client.hpp"
#include "holdfast/detail/fork_generation.hpp"
#include "holdfast/spi/config.hpp"
#include "lanes.hpp"
#include "lease_index.hpp"
#include "one_shot.hpp"
#include "schedule.hpp"
#include "watched_names.hpp"

namespace holdfast {

class Acquisition;
class LeaseImpl;

/// The time settings of the configuration, read once.
struct Timing {
    milliseconds ttl{10'000};
    std::optional<milliseconds> request_timeout;
    milliseconds backoff_first{20}, backoff_last{1000};

    milliseconds request(milliseconds for_ttl) const noexcept {
        return request_timeout.value_or(std::min(milliseconds(2000), for_ttl / 3));
    }
};

template <class Item, class Step>
struct RoundTrip;

class Engine final : public std::enable_shared_from_this<Engine>, public spi::BackendEvents {
public:
    static result<std::shared_ptr<Engine>> start(ResolvedBackend, const ClientOptions&,
                                                 Diagnostics&);
    ~Engine() override;

    // --- facts
    const ResolvedBackend resolved;
    /// Lock::place up to the name: settled now, since paths depend on the working directory.
    const std::string place;
    const Timing timing;
    spi::Backend& backend() noexcept { return *backend_; }
    bool forked() const noexcept { return fork_generation() != born_; }
    bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
    bool on_engine_thread() const noexcept { return std::this_thread::get_id() == thread_id_; }

    Counters counters;
    std::shared_ptr<Events> events;

    // --- any thread
    Lanes& lanes() noexcept { return *lanes_; }
    Schedule& schedule() noexcept { return schedule_; }
    LeaseIndex& leases() noexcept { return leases_; }
    CallbackPool& pool() noexcept { return pool_; }
    /// Runs `f` on the engine thread, never inside this call. Does nothing once that thread has
    /// ended, nor in a forked child, which has no such thread.
    template <class F>
    void post(F&& f) {
        if (forked()) return;
        const Posting here(shared_from_this());
        if (!ended_.load()) asio::post(io_, std::forward<F>(f));
    }
    /// Runs handlers that name no executor.
    const asio::any_completion_executor& default_executor() const noexcept {
        return default_executor_;
    }
    /// See Callback::complete.
    template <class Signature, class... Args>
    void complete(Callback<Signature>& callback, Args... args) {
        callback.complete(pool_, std::move(args)...);
    }
    /// The same for a handler that completes at once.
    template <class Signature, class... Args>
    void complete(asio::any_completion_handler<Signature> handler, Args... args) {
        Callback<Signature>(std::move(handler), default_executor_)
            .complete(pool_, std::move(args)...);
    }
    /// Starts an acquisition or a release, together with those of other callers.
    void submit(const std::shared_ptr<Acquisition>&);
    void submit(const std::shared_ptr<LeaseImpl>&);
    asio::io_context::executor_type executor() noexcept { return io_.get_executor(); }
    /// Gives up all waits and leases, and waits at most `grace` for the answers. Idempotent.
    void close(milliseconds grace) noexcept;

    // --- engine thread only
    /// A coroutine that holds the engine. The end waits for it: one that is never resumed would
    /// hold the engine for good.
    struct Running {
        const std::shared_ptr<Engine> engine;
        explicit Running(std::shared_ptr<Engine> e) noexcept : engine(std::move(e)) {
            ++engine->coroutines_;
        }
        ~Running() { --engine->coroutines_; }
        Running(const Running&) = delete;
        Running& operator=(const Running&) = delete;
    };
    void attempt(std::shared_ptr<Acquisition>);
    void withdraw(std::shared_ptr<Acquisition>);
    void renew(std::shared_ptr<LeaseImpl>);
    void release(std::shared_ptr<LeaseImpl>);
    /// Keeps it alive, and lets wake() find it, until remove(). The view must live in the
    /// acquisition.
    void add(std::string_view owner, std::shared_ptr<Acquisition>);
    void remove(std::string_view owner);
    /// Count withdrawals and releases, which close() waits for.
    void cleanup_started() noexcept { ++ends_; }
    void cleanup_done();

    /// Where Election::observe pauses.
    WatchedNames watched;

    // --- spi::BackendEvents, any thread
    void wake(std::string_view owner) override;
    void at_risk(std::string_view owner) override;
    void lost(std::string_view owner, error_code) override;
    void asked(std::string_view owner) override;
    void changed(std::string_view name) override;
    void moved(std::string from, std::string to) override;
    void warn(std::string text) override { events->warn(std::move(text)); }

private:
    Engine(ResolvedBackend, const ClientOptions&);
    /// Callers' requests since the engine last looked.
    struct Inbox {
        std::vector<std::shared_ptr<Acquisition>> acquisitions;
        std::vector<std::shared_ptr<LeaseImpl>> releases;
        bool empty() const noexcept { return acquisitions.empty() && releases.empty(); }
    };
    void run_thread();
    /// False: the engine has ended and will not look again.
    template <class Item>
    bool put(const std::shared_ptr<Item>&, std::vector<std::shared_ptr<Item>> Inbox::*);
    void start_submitted();
    void flush_soon();
    void flush();
    void report(const char* verb, const std::exception& failure) noexcept;
    void give_up_everything();
    void close_and_wait(milliseconds grace) noexcept;
    /// close() on the engine thread, which cannot wait for itself.
    void close_itself();
    void finish();
    /// The rest of the end, once the engine thread runs nothing any more.
    void end(milliseconds grace);
    /// Runs the handlers that are ready, and until the last coroutine ends. False: some are left.
    bool drain(boot_clock::time_point until);
    /// The same without a limit, on a thread of its own: what is left keeps the engine alive.
    void drain_later() noexcept;
    spi::awaitable<void> stop_backend(std::function<void()> stopped);
    template <class Item, class Step>
    struct Request {
        std::shared_ptr<Item> item;
        Step* step;          ///< null: nothing is left to ask
        std::size_t server;  ///< which one of the batch's, by Backend::server_of
    };
    template <class Item, class Step>
    using Asked = std::vector<Request<Item, Step>>;
    /// Hands a queue's items to a verb of the backend. A batch has at most max_batch items, of one
    /// server, with about the same deadline.
    template <class Item, class Step>
    void send(Batches<Item>&, const RoundTrip<Item, Step>&);
    template <class Item, class Step>
    spi::awaitable<void> run(Batches<Item>&, const RoundTrip<Item, Step>&, Asked<Item, Step>);

    const std::uint64_t born_ = fork_generation();
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
    CallbackPool pool_;
    Schedule schedule_;
    std::shared_ptr<Timed> pool_watch_, lanes_watch_;
    const asio::any_completion_executor default_executor_;  // for handlers that name none
    std::unique_ptr<spi::Backend> backend_;
    std::unique_ptr<Lanes> lanes_;
    LeaseIndex leases_;
    std::thread thread_;
    std::thread::id thread_id_;
    /// A thread that has looked whether the engine has ended, and has perhaps not posted yet: end()
    /// waits for it, since what came later would keep the engine alive and never run. It holds the
    /// engine, since what it posts may run at once and be the last that did.
    struct Posting {
        const std::shared_ptr<Engine> engine;
        explicit Posting(std::shared_ptr<Engine> e) noexcept : engine(std::move(e)) {
            engine->posting_.fetch_add(1);
        }
        ~Posting() {
            if (engine->posting_.fetch_sub(1) == 1 && engine->ended_.load())
                engine->posting_.notify_all();
        }
        Posting(const Posting&) = delete;
        Posting& operator=(const Posting&) = delete;
    };
    std::size_t coroutines_ = 0;  // where io_ runs
    std::atomic<bool> closed_{false}, ended_{false};
    std::atomic<int> posting_{0};
    std::atomic<bool> closing_{false}, close_done_{false};
    std::atomic<std::thread::id> closer_{};
    bool backend_stopping_ = false;              // engine thread only
    std::optional<milliseconds> closes_itself_;  // within this grace; engine thread only

    std::mutex inbox_mutex_;
    Inbox inbox_;
    bool inbox_shut_ = false;

    /// No server is faster with more of them at a time.
    static constexpr std::size_t most_under_way = 1024;
    Batches<Acquisition> attempts_{most_under_way}, withdrawals_{most_under_way};
    Batches<LeaseImpl> releases_{most_under_way};
    Batches<LeaseImpl> renewals_{std::numeric_limits<std::size_t>::max()};  // a lease must not wait
    bool flushing_ = false;
    boost::unordered_flat_map<std::string_view, std::shared_ptr<Acquisition>, OwnerHash>
        acquisitions_;
    std::size_t ends_ = 0;
    std::function<void()> all_ended_;
};

/// Shared by copies of a Client, Locks and Leases: destroying the last one closes the engine.
struct Client::Impl {
    Impl(std::shared_ptr<Engine> e, milliseconds g) : engine(std::move(e)), grace(g) {}
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();
    std::shared_ptr<Engine> engine;
    const milliseconds grace;
};

}  // namespace holdfast
