#include "backend_lock.hpp"

#include <boost/asio/bind_executor.hpp>

#include "grant.hpp"
#include "holdfast/spi/drift.hpp"
#include "holdfast/spi/owner.hpp"
#include "ride.hpp"
#include "waiter.hpp"

namespace holdfast {
namespace {

/// Validity is counted from before the request was sent.
Grant::Facts facts_of(const spi::Attempt& a, const spi::Attempt::Granted& g,
                      boot_clock::time_point started) {
    const auto base = g.base == boot_clock::time_point{} ? a.sent : g.base;
    return {g.token, g.previous, g.ttl, base, base + g.ttl - spi::drift(g.ttl), started};
}

}  // namespace

error_code BackendLock::refuse() const noexcept {
    const Engine& engine = *handle_->engine;
    if (engine.forked()) return make_error_code(errc::forked);
    if (engine.closed()) return make_error_code(errc::closed);
    return {};
}

result<Lease> BackendLock::do_acquire(const AcquireOptions& options, std::stop_token stop) {
    Engine& engine = *handle_->engine;
    if (const auto ec = refuse()) return ec;
    if (engine.on_engine_thread()) return make_error_code(errc::would_deadlock);
    if (stop.stop_requested()) return make_error_code(errc::cancelled);

    const auto started = boot_clock::now();
    std::string owner = spi::make_owner(options.note);
    const bool may_wait = options.wait > milliseconds::zero();
    if (may_wait && info_->busy.load(std::memory_order_relaxed))
        return wait_on_engine(std::move(owner), options, stop, started, nullptr);
    auto lane = engine.lanes().borrow();
    if (!lane) return wait_on_engine(std::move(owner), options, stop, started, nullptr);

    spi::Attempt a;
    a.name = info_->name;
    a.owner = owner;
    a.ttl = info_->ttl;
    a.sent = started;
    a.deadline = started +
                 std::min(info_->request_timeout, may_wait ? options.wait : info_->request_timeout);
    Counters::add(engine.counters.attempts);
    lane->attempt(a);
    if (const auto* g = std::get_if<spi::Attempt::Granted>(&a.outcome)) {
        info_->busy.store(false, std::memory_order_relaxed);
        const auto facts = facts_of(a, *g, started);
        if (facts.valid_until > boot_clock::now()) {
            auto grant = Grant::make(handle_->engine, handle_, info_, std::move(owner),
                                     std::move(a.place), facts);
            if (!engine.closed()) return Lease(std::move(grant));
            // close() may have been through before there was a lease that it could give up.
            grant->give_back(*lane);
            return make_error_code(errc::closed);
        }
        a.outcome = spi::Attempt::Doubt{make_error_code(errc::unavailable)};
    }
    if (std::holds_alternative<spi::Attempt::Busy>(a.outcome) && !may_wait) {
        Counters::add(engine.counters.contended);
        const auto ec = make_error_code(errc::contended);
        if (options.diagnostics != nullptr)
            explain(*options.diagnostics, engine.chosen, ec, a.detail);
        return ec;
    }
    // Busy, in doubt, or not reached: the engine waits, finds out and tries again.
    return wait_on_engine(std::move(owner), options, stop, started, &a);
}

result<Lease> BackendLock::wait_on_engine(std::string owner, const AcquireOptions& options,
                                          const std::stop_token& stop,
                                          boot_clock::time_point started, spi::Attempt* left) {
    auto latch = std::make_shared<Latch<Waiter::SyncResult>>();
    Waiter::Caller caller{{}, latch, options.diagnostics};
    auto waiter = std::make_shared<Waiter>(handle_->engine, handle_, info_, std::move(owner),
                                           options.wait, started, std::move(caller));
    if (left != nullptr) waiter->adopt(*left);
    handle_->engine->submit(waiter);
    const std::stop_callback on_stop(stop, [&] {
        handle_->engine->post([waiter] { waiter->cancel(make_error_code(errc::cancelled)); });
    });
    // The engine tells every waiter at its deadline, and all of them when it closes.
    auto [ec, lease] = latch->take();
    if (ec) return ec;
    return std::move(lease);
}

void BackendLock::do_async_acquire(const AcquireOptions& options, Handler handler) {
    Engine& engine = *handle_->engine;
    if (engine.forked()) return;  // the child has no thread that could complete it
    if (const auto ec = refuse()) return engine.complete_later(std::move(handler), ec, Lease());
    auto slot = asio::get_associated_cancellation_slot(handler);
    // Whoever may wait for a lock that was busy a moment ago stands in line at once.
    const bool may_ride =
        options.wait <= milliseconds::zero() || !info_->busy.load(std::memory_order_relaxed);
    auto passage = may_ride ? engine.passage(handler) : std::nullopt;
    Waiter::Caller caller{engine.callback(std::move(handler)), nullptr, options.diagnostics};
    const auto now = boot_clock::now();
    auto waiter =
        std::make_shared<Waiter>(handle_->engine, handle_, info_, spi::make_owner(options.note),
                                 options.wait, now, std::move(caller));
    std::shared_ptr<Ride> ride;
    if (passage)
        ride = std::make_shared<RideOf<Waiter>>(handle_->engine, std::move(*passage), waiter);
    if (slot.is_connected())
        slot.assign([weak = std::weak_ptr<Waiter>(waiter), riding = std::weak_ptr<Ride>(ride),
                     e = handle_->engine->weak_from_this()](asio::cancellation_type) {
            const auto engine_alive = e.lock();
            if (!engine_alive) return;
            engine_alive->post([weak, riding] {
                const auto why = make_error_code(errc::cancelled);
                if (const auto r = riding.lock()) return r->give_up(why);
                if (const auto w = weak.lock()) w->cancel(why);
            });
        });
    if (ride && ride->start(waiter->prepare_ride(now).deadline)) return;
    engine.submit(waiter);
}

}  // namespace holdfast
