#include "engine.hpp"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <iterator>

#include "acquisition.hpp"
#include "holdfast/spi/exhausted.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "holdfast/spi/signal_masked_thread.hpp"
#include "lease_impl.hpp"
#include "places.hpp"

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

/// A call at the moment that was asked of the schedule: no thread waits for it.
class TimedCall final : public Timed {
public:
    using Call = std::function<void(boot_clock::time_point)>;
    explicit TimedCall(Call c) : call_(std::move(c)) {}
    void fire(boot_clock::time_point now) override { call_(now); }

private:
    const Call call_;
};

}  // namespace

/// The course of a batch, the same for every verb.
template <class Item, class Step>
struct RoundTrip {
    spi::Verb verb;
    const char* name;
    Step* (Item::*prepare)(boot_clock::time_point);  ///< null: nothing is left to ask
    spi::awaitable<void> (spi::Backend::*call)(std::span<Step* const>);
    bool (Item::*heard)() const noexcept;  ///< the server itself has answered
    void (Item::*answered)();
};

namespace {

constexpr RoundTrip<Acquisition, spi::Attempt> attempting{
    spi::Verb::attempt,     "attempt",           &Acquisition::prepare_attempt,
    &spi::Backend::attempt, &Acquisition::heard, &Acquisition::answered};
constexpr RoundTrip<Acquisition, spi::Attempt> withdrawing{spi::Verb::withdraw,
                                                           "withdraw",
                                                           &Acquisition::prepare_withdrawal,
                                                           &spi::Backend::withdraw,
                                                           &Acquisition::is_withdrawn,
                                                           &Acquisition::withdrawn};
constexpr RoundTrip<LeaseImpl, spi::Held> renewing{spi::Verb::renew,
                                                   "renew",
                                                   &LeaseImpl::prepare_renewal,
                                                   &spi::Backend::renew,
                                                   &LeaseImpl::renewal_heard,
                                                   &LeaseImpl::renewed};
constexpr RoundTrip<LeaseImpl, spi::Held> releasing{
    spi::Verb::release,          "release",
    &LeaseImpl::prepare_release, &spi::Backend::release,
    &LeaseImpl::release_heard,   &LeaseImpl::release_answered};

}  // namespace

result<std::shared_ptr<Engine>> Engine::start(ResolvedBackend resolved,
                                              const ClientOptions& options,
                                              Diagnostics& diagnostics) {
    const std::string where = resolved.settings.display();
    const auto no_room = [&](const char* why) {
        diagnostics.add(where, std::string("this machine has no room for a client: ") + why,
                        std::string(spi::exhausted_remedy));
        return make_error_code(errc::unavailable);
    };
    try {
        std::shared_ptr<Engine> engine(new Engine(std::move(resolved), options));
        const spi::Context context{engine->io_.get_executor(), *engine};
        engine->backend_ = engine->resolved.backend->make(engine->resolved.settings, context);
        engine->lanes_ = std::make_unique<Lanes>(*engine->backend_,
                                                 [e = engine.get()](boot_clock::time_point due) {
                                                     e->schedule_.set(*e->lanes_watch_, due);
                                                 });
        engine->lanes_watch_ = std::make_shared<TimedCall>(
            [e = engine.get()](boot_clock::time_point now) { e->lanes_->close_idle(now); });
        engine->thread_ = spi::signal_masked_thread([engine] { engine->run_thread(); });
        engine->thread_id_ = engine->thread_.get_id();
        return engine;
    } catch (const std::exception& e) {
        if (spi::is_exhausted(e)) return no_room(e.what());
        diagnostics.add(where, e.what());
        const auto* system = dynamic_cast<const boost::system::system_error*>(&e);
        return system != nullptr ? system->code() : make_error_code(errc::bad_config);
    }
}

Engine::Engine(ResolvedBackend c, const ClientOptions& options)
    : resolved(std::move(c)),
      place(place_before_name(resolved)),
      timing(read_timing(resolved.settings)),
      pool_([this] { schedule_.set(*pool_watch_, boot_clock::now() + CallbackPool::patience); }),
      schedule_(io_),
      pool_watch_(std::make_shared<TimedCall>([this](boot_clock::time_point) { pool_.check(); })),
      default_executor_(options.executor ? bare(options.executor) : PoolExecutor(pool_)) {
    events = std::make_shared<Events>(options.events, pool_);
}

Engine::~Engine() {
    schedule_.cancel(*pool_watch_);
    if (lanes_watch_) schedule_.cancel(*lanes_watch_);
}

void Engine::run_thread() {
    ::pthread_setname_np(::pthread_self(), "holdfast");
    io_.run();
    if (closes_itself_) end(*closes_itself_);
}

// --- batches

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

void Engine::submit(const std::shared_ptr<Acquisition>& w) {
    if (!put(w, &Inbox::acquisitions)) w->refuse(make_error_code(errc::closed));
}

void Engine::submit(const std::shared_ptr<LeaseImpl>& g) {
    if (!put(g, &Inbox::releases)) g->refuse_release();
}

void Engine::start_submitted() {
    Inbox all;
    {
        const std::lock_guard hold(inbox_mutex_);
        std::swap(all, inbox_);
    }
    flushing_ = true;  // what they ask for goes out below, not a turn of the loop later
    for (const auto& lease : all.releases)
        lease->start_release();
    for (const auto& acquisition : all.acquisitions)
        acquisition->start();
    flush();
}

void Engine::attempt(std::shared_ptr<Acquisition> w) {
    attempts_.add(std::move(w));
    flush_soon();
}
void Engine::withdraw(std::shared_ptr<Acquisition> w) {
    withdrawals_.add(std::move(w));
    flush_soon();
}
void Engine::renew(std::shared_ptr<LeaseImpl> g) {
    renewals_.add(std::move(g));
    flush_soon();
}
void Engine::release(std::shared_ptr<LeaseImpl> g) {
    releases_.add(std::move(g));
    flush_soon();
}

void Engine::flush_soon() {
    if (std::exchange(flushing_, true)) return;
    post([self = shared_from_this()] { self->flush(); });
}

void Engine::flush() {
    flushing_ = false;
    // What frees a lock goes first: an acquisition of this client may want it.
    send(releases_, releasing);
    send(withdrawals_, withdrawing);
    send(renewals_, renewing);
    send(attempts_, attempting);
}

template <class Item, class Step>
void Engine::send(Batches<Item>& queue, const RoundTrip<Item, Step>& trip) {
    auto items = queue.take();
    if (items.empty()) return;
    const auto now = boot_clock::now();
    Asked<Item, Step> all;
    all.reserve(items.size());
    // In the order in which they come up: by their addresses, no run would be like another.
    std::vector<const void*> servers;
    const auto number_of = [&servers](const void* server) -> std::size_t {
        if (server == nullptr) return 0;
        const auto at = std::find(servers.begin(), servers.end(), server);
        const auto number = 1 + static_cast<std::size_t>(at - servers.begin());
        if (at == servers.end()) servers.push_back(server);
        return number;
    };
    for (auto& item : items) {
        Step* const step = ((*item).*trip.prepare)(now);
        const void* const server = step != nullptr ? backend_->server_of(step->name) : nullptr;
        all.push_back({std::move(item), step, number_of(server)});
    }
    // A verb ends at the latest of its items' deadlines, and none waits for another's.
    const auto until = [now](const auto& one) { return one.step ? one.step->deadline : now; };
    const auto sooner = [&](const auto& a, const auto& b) { return until(a) < until(b); };
    // Attempts keep their order, which is that of the waiters.
    if (trip.verb != spi::Verb::attempt && !std::is_sorted(all.begin(), all.end(), sooner))
        std::stable_sort(all.begin(), all.end(), sooner);
    const auto before = [](const auto& a, const auto& b) { return a.server < b.server; };
    if (!std::is_sorted(all.begin(), all.end(), before))
        std::stable_sort(all.begin(), all.end(), before);
    const auto alike = [&](const auto& a, const auto& b) {
        return a.server == b.server && until(a) - until(b) < milliseconds(10) &&
               until(b) - until(a) < milliseconds(10);
    };
    const std::size_t most = std::max<std::size_t>(backend_->max_batch(trip.verb), 1);
    for (auto from = all.begin(), to = from; from != all.end(); from = to) {
        while (to != all.end() && static_cast<std::size_t>(to - from) < most && alike(*from, *to))
            ++to;
        Asked<Item, Step> batch(std::make_move_iterator(from), std::make_move_iterator(to));
        auto task = run(queue, trip, std::move(batch));
        asio::co_spawn(io_, std::move(task), asio::detached);
    }
}

template <class Item, class Step>
spi::awaitable<void> Engine::run(Batches<Item>& queue, const RoundTrip<Item, Step>& trip,
                                 Asked<Item, Step> batch) {
    const Running self(shared_from_this());
    std::vector<Step*> steps;
    try {
        steps.reserve(batch.size());
        for (const auto& one : batch)
            if (one.step != nullptr) steps.push_back(one.step);
        if (!steps.empty()) {
            auto asking = ((*backend_).*trip.call)(steps);
            co_await std::move(asking);
        }
    } catch (const std::exception& e) {
        report(trip.name, e);
    }
    bool heard = false;
    for (const auto& one : batch) {
        heard = heard || ((*one.item).*trip.heard)();
        ((*one.item).*trip.answered)();
    }
    if (queue.answered(batch.size(), heard)) flush_soon();
}

void Engine::report(const char* verb, const std::exception& failure) noexcept {
    try {
        events->warn(std::string(verb) + ": " + failure.what());
    } catch (const std::exception&) {
        // Without memory the callers still hear that nothing was answered.
    }
}

// --- the end

void Engine::cleanup_done() {
    if (--ends_ == 0 && all_ended_) std::exchange(all_ended_, {})();
}

void Engine::give_up_everything() {
    const auto waiting = acquisitions_;
    for (const auto& [owner, acquisition] : waiting)
        acquisition->cancel(make_error_code(errc::closed));
    for (const auto& lease : leases_.all())
        lease->lose(make_error_code(errc::closed), true);
    watched.wake_all();
}

spi::awaitable<void> Engine::stop_backend(std::function<void()> stopped) {
    const Running self(shared_from_this());
    try {
        auto verb = backend_->close();
        co_await std::move(verb);
    } catch (const std::exception&) {
        // No caller is left to notify.
    }
    stopped();
}

void Engine::close(milliseconds grace) noexcept {
    if (forked()) return;
    if (closing_.exchange(true)) {
        // Handlers that die while it closes may own the client: close() waits for them.
        const bool by_ourselves = on_engine_thread() || closer_ == std::this_thread::get_id();
        if (!by_ourselves) close_done_.wait(false);
        return;
    }
    closer_ = std::this_thread::get_id();
    closed_.store(true, std::memory_order_release);
    if (!on_engine_thread()) return close_and_wait(grace);
    // A user's handler was destroyed here, unrun. This thread must not wait, so the rest happens
    // later on it.
    thread_.detach();
    closes_itself_ = grace;
    post([self = shared_from_this()] { self->close_itself(); });
}

void Engine::close_and_wait(milliseconds grace) noexcept {
    const auto self = shared_from_this();
    const auto until = boot_clock::now() + grace;
    auto ended = std::make_shared<OneShot<bool>>();
    post([self] { self->give_up_everything(); });
    // The engine releases what a blocking call left in doubt.
    lanes_->stop();
    lanes_->wait(until);
    post([self, ended] {
        if (self->ends_ == 0) return ended->set(true);
        self->all_ended_ = [ended] { ended->set(true); };
    });
    ended->take_until(until);
    auto stopped = std::make_shared<OneShot<bool>>();
    post([self, stopped] {
        asio::co_spawn(self->io_, self->stop_backend([stopped] { stopped->set(true); }),
                       asio::detached);
    });
    stopped->take_until(boot_clock::now() + spi::Backend::closing_time + milliseconds(50));
    finish();
    if (thread_.joinable()) thread_.join();
    end(grace);
}

void Engine::close_itself() {
    give_up_everything();
    const auto timer = std::make_shared<asio::steady_timer>(io_, *closes_itself_);
    const auto stop = [self = shared_from_this(), timer] {
        if (std::exchange(self->backend_stopping_, true)) return;
        timer->cancel();
        self->lanes_->stop();
        asio::co_spawn(self->io_, self->stop_backend([self] { self->finish(); }), asio::detached);
    };
    if (ends_ == 0) return stop();
    all_ended_ = stop;
    timer->async_wait([stop](error_code) { stop(); });
}

void Engine::end(milliseconds grace) {
    // Only now: the engine thread may have been in the schedule.
    schedule_.stop();
    // An engine that was too busy to get there in time still notifies every waiter.
    // Verbs under way end now that their sockets are closed; their frames must not outlive the
    // backend.
    io_.restart();
    // What is posted from here on would keep the engine alive, and never run.
    ended_.store(true);
    for (int n = posting_.load(); n != 0; n = posting_.load())
        posting_.wait(n);
    {
        const std::lock_guard hold(inbox_mutex_);
        inbox_shut_ = true;
    }
    start_submitted();
    give_up_everything();
    const bool drained = drain(boot_clock::now() + milliseconds(1000));
    // No request will follow; callers that wait for an answer keep the engine alive.
    all_ended_ = {};
    for (const auto& lease : leases_.all())
        lease->forget();
    const auto waiting = acquisitions_;
    for (const auto& [owner, acquisition] : waiting)
        acquisition->forget();
    // They keep the engine alive, too.
    attempts_.clear(), withdrawals_.clear(), releases_.clear(), renewals_.clear();
    pool_.stop(grace);
    if (!drained) drain_later();
    close_done_ = true;
    close_done_.notify_all();
}

bool Engine::drain(boot_clock::time_point until) {
    // A coroutine that pauses, as a backend that is closing may, goes on by nobody else.
    const auto one = [&] {
        return io_.poll_one() != 0 ||
               (coroutines_ > 0 && io_.run_one_until(spi::net::steady(until)) != 0);
    };
    while (one())
        if (boot_clock::now() >= until) return false;
    return coroutines_ == 0;
}

void Engine::drain_later() noexcept {
    const auto rest = [self = shared_from_this()] { self->drain(boot_clock::time_point::max()); };
    try {
        spi::signal_masked_thread(rest).detach();
    } catch (const std::exception&) {
        rest();
    }
}

void Engine::finish() {
    work_.reset();
    io_.stop();
}

Client::Impl::~Impl() {
    if (engine->forked()) {
        // Its threads and mutexes are the parent's, in whatever state the fork found them.
        // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the child ends here
        new std::shared_ptr<Engine>(std::move(engine));
        return;
    }
    engine->close(grace);
}

}  // namespace holdfast
