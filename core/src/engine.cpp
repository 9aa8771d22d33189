#include "engine.hpp"

#include <pthread.h>

#include <boost/asio/steady_timer.hpp>

#include "grant.hpp"
#include "ride.hpp"
#include "waiter.hpp"

namespace holdfast {
namespace {

Timing read_timing(const spi::Settings& s) {
    Timing t;
    t.ttl = s.duration("ttl");
    if (!s.text("request_timeout").empty()) t.request_timeout = s.duration("request_timeout");
    t.backoff_first = s.duration("backoff_min");
    t.backoff_last = s.duration("backoff_max");
    return t;
}

/// The pool asks for another look when its work waits; the schedule does that without a thread.
class PoolWatch final : public Timed {
public:
    explicit PoolWatch(UserPool& pool) : pool_(&pool) {}
    void fire(boot_clock::time_point) override { pool_->check(); }

private:
    UserPool* pool_;
};

}  // namespace

result<std::shared_ptr<Engine>> Engine::start(Chosen chosen, const ClientOptions& options,
                                              Diagnostics& diagnostics) {
    std::shared_ptr<Engine> engine(new Engine(std::move(chosen), options));
    try {
        const spi::Context context{engine->io_.get_executor(), *engine};
        engine->backend_ = engine->chosen.backend->make(engine->chosen.settings, context);
        engine->lanes_ = std::make_unique<Lanes>(*engine->backend_);
        engine->sole_lane_ = std::make_unique<SoleLane>(*engine->backend_);
        engine->thread_ = std::thread([engine] { engine->run_thread(); });
        engine->thread_id_ = engine->thread_.get_id();
    } catch (const boost::system::system_error& e) {
        diagnostics.add(engine->chosen.settings.display(), e.what());
        return e.code();
    } catch (const std::exception& e) {
        diagnostics.add(engine->chosen.settings.display(), e.what());
        return make_error_code(errc::bad_config);
    }
    return engine;
}

asio::any_completion_executor bare(asio::any_completion_executor e) noexcept {
    if (const auto* loop = e.target<asio::io_context::executor_type>()) return *loop;
    return e;
}

Engine::Engine(Chosen c, const ClientOptions& options)
    : chosen(std::move(c)),
      timing(read_timing(chosen.settings)),
      pool_([this] { schedule_.set(*pool_watch_, boot_clock::now() + UserPool::patience); }),
      schedule_(io_),
      pool_watch_(std::make_shared<PoolWatch>(pool_)),
      where_else_(options.executor ? bare(options.executor) : PoolExecutor(pool_)) {
    events = std::make_shared<Events>(options.events, pool_);
}

Engine::~Engine() {
    schedule_.cancel(*pool_watch_);
}

void Engine::run_thread() {
    ::pthread_setname_np(::pthread_self(), "holdfast");
    io_.run();
    if (closes_itself_) end(*closes_itself_);
}

// --- batches
// ----------------------------------------------------------------------------------------

template <class Item>
bool Engine::put(const std::shared_ptr<Item>& item,
                 std::vector<std::shared_ptr<Item>> Inbox::*where) {
    bool first = false;
    {
        const std::lock_guard hold(inbox_mutex_);
        if (inbox_shut_) return false;
        first = inbox_.empty();
        (inbox_.*where).push_back(item);
    }
    if (first) post([self = shared_from_this()] { self->start_submitted(); });
    return true;
}

void Engine::submit(const std::shared_ptr<Waiter>& w) {
    if (!put(w, &Inbox::waiters)) w->refuse(make_error_code(errc::closed));
}

void Engine::submit(const std::shared_ptr<Grant>& g) {
    if (!put(g, &Inbox::releases)) g->refuse_release();
}

void Engine::go_on(const std::shared_ptr<Waiter>& w) {
    if (!on_engine_thread()) return submit(w);
    w->start();
}

void Engine::go_on(const std::shared_ptr<Grant>& g) {
    if (!on_engine_thread()) return submit(g);
    g->start_release();
}

SoleLane::Ptr Engine::borrow_sole_lane() {
    // Calls that come together share their requests on the engine's connection.
    const bool alone = counters.waiting.load(std::memory_order_relaxed) == 0 && ends_ == 0;
    if (!alone || closed()) return nullptr;
    auto lane = sole_lane_->borrow();
    if (lane) return lane;
    if (auto cold = sole_lane_->to_open())
        pool_.post([self = shared_from_this(), cold = std::move(cold)]() mutable {
            cold->open(boot_clock::now() + self->timing.request(self->timing.ttl));
            self->sole_lane_->give_back(std::move(cold));
        });
    return nullptr;
}

std::optional<Passage> Engine::passage(SoleLane::Ptr lane,
                                       const asio::any_completion_executor& where) {
    if (auto executor = Ride::waits_on(where))
        return Passage{std::move(lane), std::move(*executor)};
    sole_lane_->give_back(std::move(lane));
    return std::nullopt;
}

void Engine::start_submitted() {
    Inbox all;
    {
        const std::lock_guard hold(inbox_mutex_);
        std::swap(all, inbox_);
    }
    flushing_ = true;  // what they ask for goes out below, not a turn of the loop later
    for (const auto& grant : all.releases)
        grant->start_release();
    for (const auto& waiter : all.waiters)
        waiter->start();
    flush();
}

void Engine::attempt(std::shared_ptr<Waiter> w) {
    attempts_.push_back(std::move(w));
    flush_soon();
}
void Engine::withdraw(std::shared_ptr<Waiter> w) {
    withdrawals_.push_back(std::move(w));
    flush_soon();
}
void Engine::renew(std::shared_ptr<Grant> g) {
    renewals_.push_back(std::move(g));
    flush_soon();
}
void Engine::release(std::shared_ptr<Grant> g) {
    releases_.push_back(std::move(g));
    flush_soon();
}

void Engine::flush_soon() {
    if (std::exchange(flushing_, true)) return;
    post([self = shared_from_this()] { self->flush(); });
}

void Engine::flush() {
    flushing_ = false;
    // What frees a lock goes first: a waiter of this client may want it.
    spawn(releases_, &Engine::run_releases);
    spawn(withdrawals_, &Engine::run_withdrawals);
    spawn(renewals_, &Engine::run_renewals);
    spawn(attempts_, &Engine::run_attempts);
}

template <class Item>
void Engine::spawn(std::vector<std::shared_ptr<Item>>& queue,
                   spi::awaitable<void> (Engine::*verb)(std::vector<std::shared_ptr<Item>>)) {
    std::vector<std::shared_ptr<Item>> all;
    all.swap(queue);
    const std::size_t most = std::max<std::size_t>(backend_->max_batch(), 1);
    for (std::size_t at = 0; at < all.size(); at += most) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(at);
        const auto to = all.begin() + static_cast<std::ptrdiff_t>(std::min(at + most, all.size()));
        std::vector<std::shared_ptr<Item>> batch(std::make_move_iterator(from),
                                                 std::make_move_iterator(to));
        auto task = (this->*verb)(std::move(batch));
        asio::co_spawn(io_, std::move(task), asio::detached);
    }
}

spi::awaitable<void> Engine::run_attempts(std::vector<std::shared_ptr<Waiter>> batch) {
    const auto self = shared_from_this();
    std::vector<spi::Attempt*> items;
    items.reserve(batch.size());
    const auto now = boot_clock::now();
    for (const auto& w : batch) {
        spi::Attempt& a = w->prepare_attempt(now);
        a.outcome = spi::Attempt::Doubt{make_error_code(errc::unavailable)};
        items.push_back(&a);
    }
    ++verbs_;
    try {
        auto verb = backend_->attempt(items);
        co_await std::move(verb);
    } catch (const std::exception& e) {
        events->warn(std::string("attempt: ") + e.what());
    }
    --verbs_;
    for (const auto& w : batch)
        w->answered();
}

spi::awaitable<void> Engine::run_withdrawals(std::vector<std::shared_ptr<Waiter>> batch) {
    const auto self = shared_from_this();
    std::vector<spi::Attempt*> items;
    items.reserve(batch.size());
    const auto now = boot_clock::now();
    for (const auto& w : batch)
        items.push_back(&w->prepare_withdrawal(now));
    error_code ec = make_error_code(errc::unavailable);
    ++verbs_;
    try {
        auto verb = backend_->withdraw(items);
        ec = co_await std::move(verb);
    } catch (const std::exception& e) {
        events->warn(std::string("withdraw: ") + e.what());
    }
    --verbs_;
    for (const auto& w : batch)
        w->withdrawn(ec);
}

spi::awaitable<void> Engine::run_renewals(std::vector<std::shared_ptr<Grant>> batch) {
    const auto self = shared_from_this();
    std::vector<spi::Held*> items;
    items.reserve(batch.size());
    const auto now = boot_clock::now();
    for (const auto& g : batch)
        if (g->lives()) items.push_back(&g->prepare_renewal(now));
    ++verbs_;
    try {
        if (!items.empty()) {
            auto verb = backend_->renew(items);
            co_await std::move(verb);
        }
    } catch (const std::exception& e) {
        events->warn(std::string("renew: ") + e.what());
    }
    --verbs_;
    for (const auto& g : batch)
        g->renewed();
}

spi::awaitable<void> Engine::run_releases(std::vector<std::shared_ptr<Grant>> batch) {
    const auto self = shared_from_this();
    std::vector<spi::Held*> items;
    items.reserve(batch.size());
    const auto now = boot_clock::now();
    for (const auto& g : batch)
        items.push_back(&g->prepare_release(now));
    ++verbs_;
    try {
        auto verb = backend_->release(items);
        co_await std::move(verb);
    } catch (const std::exception& e) {
        events->warn(std::string("release: ") + e.what());
    }
    --verbs_;
    for (const auto& g : batch)
        g->release_answered();
}

// --- what the backend says
// --------------------------------------------------------------------------

void Engine::enrol(std::string_view owner, std::shared_ptr<Waiter> w) {
    waiters_.emplace(owner, std::move(w));
}

void Engine::dismiss(std::string_view owner) {
    waiters_.erase(owner);
}

void Engine::wake(std::string_view owner) {
    if (!on_engine_thread())
        return post([self = shared_from_this(), o = std::string(owner)] { self->wake(o); });
    const auto at = waiters_.find(owner);
    if (at == waiters_.end()) return;
    const auto alive = at->second;
    alive->wake();
}

template <class F>
void Engine::on_grants(std::string_view owner, F f) {
    for (const auto& timed : schedule_.all())
        if (const auto grant = std::dynamic_pointer_cast<Grant>(timed))
            if (owner.empty() || grant->owned_by(owner)) f(*grant);
}

void Engine::doubt(std::string_view owner) {
    post([self = shared_from_this(), o = std::string(owner)] {
        self->on_grants(o, [&](Grant& g) {
            if (!o.empty() || g.at_risk()) g.renew_now();
        });
    });
}

void Engine::lost(std::string_view owner, error_code why) {
    post([self = shared_from_this(), o = std::string(owner), why] {
        self->on_grants(o, [&](Grant& g) { g.lose(why, false); });
    });
}

// --- the end
// ----------------------------------------------------------------------------------------

void Engine::end_end() {
    if (--ends_ == 0 && all_ended_) std::exchange(all_ended_, {})();
}

void Engine::give_up_everything() {
    for (const auto& timed : schedule_.all())
        if (const auto ride = std::dynamic_pointer_cast<Ride>(timed))
            ride->give_up(make_error_code(errc::closed));
    const auto waiting = waiters_;
    for (const auto& [owner, waiter] : waiting)
        waiter->cancel(make_error_code(errc::closed));
    on_grants({}, [](Grant& g) { g.lose(make_error_code(errc::closed), true); });
}

spi::awaitable<void> Engine::stop_backend(std::function<void()> stopped) {
    const auto self = shared_from_this();
    try {
        auto verb = backend_->close();
        co_await std::move(verb);
    } catch (const std::exception&) {
        // Nothing is left that could be told.
    }
    stopped();
}

void Engine::close(milliseconds grace) noexcept {
    if (forked()) return;
    std::call_once(closing_, [&] {
        closed_.store(true, std::memory_order_release);
        const auto self = shared_from_this();
        if (on_engine_thread()) {
            // A user's handler died here, unrun: nobody may wait, so the rest happens by itself.
            thread_.detach();
            closes_itself_ = grace;
            post([self] { self->close_itself(); });
            return;
        }
        const auto until = boot_clock::now() + grace;
        auto ended = std::make_shared<Latch<bool>>();
        post([self, ended] {
            self->give_up_everything();
            if (self->ends_ == 0) return ended->set(true);
            self->all_ended_ = [ended] { ended->set(true); };
        });
        ended->take_until(until);
        lanes_->stop();
        sole_lane_->stop();
        auto stopped = std::make_shared<Latch<bool>>();
        post([self, stopped] {
            asio::co_spawn(self->io_, self->stop_backend([stopped] { stopped->set(true); }),
                           asio::detached);
        });
        stopped->take_until(boot_clock::now() + milliseconds(200));
        finish();
        if (thread_.joinable()) thread_.join();
        end(grace);
    });
}

void Engine::close_itself() {
    give_up_everything();
    const auto timer = std::make_shared<asio::steady_timer>(io_, *closes_itself_);
    const auto stop = [self = shared_from_this(), timer] {
        if (std::exchange(self->backend_stopping_, true)) return;
        timer->cancel();
        self->lanes_->stop();
        self->sole_lane_->stop();
        asio::co_spawn(self->io_, self->stop_backend([self] { self->finish(); }), asio::detached);
    };
    if (ends_ == 0) return stop();
    all_ended_ = stop;
    timer->async_wait([stop](error_code) { stop(); });
}

void Engine::end(milliseconds grace) {
    // Only now: the engine thread may have been in the schedule.
    schedule_.stop();
    // An engine that was too busy to get there in time: everybody who waits is told all the same.
    // Verbs under way end now that their sockets are closed; their frames must not outlive the
    // backend.
    io_.restart();
    // What is posted from here on would keep the engine alive, and never run.
    ended_.store(true, std::memory_order_release);
    {
        const std::lock_guard hold(inbox_mutex_);
        inbox_shut_ = true;
    }
    start_submitted();
    give_up_everything();
    drain(boot_clock::now() + milliseconds(1000));
    // Nobody will ask the server again; those who wait for its answer keep the engine alive.
    all_ended_ = {};
    on_grants({}, [](Grant& g) { g.forget(); });
    const auto waiting = waiters_;
    for (const auto& [owner, waiter] : waiting)
        waiter->forget();
    pool_.stop(grace);
}

void Engine::drain(boot_clock::time_point until) {
    while (io_.poll_one() != 0 && boot_clock::now() < until) {
    }
}

void Engine::finish() {
    work_.reset();
    io_.stop();
}

Handle::~Handle() {
    if (engine->forked()) {
        // Its threads and mutexes are the parent's, in whatever state the fork found them.
        // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the child ends here
        new std::shared_ptr<Engine>(std::move(engine));
        return;
    }
    engine->close(grace);
}

}  // namespace holdfast
