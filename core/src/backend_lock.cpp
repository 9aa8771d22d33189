#include "backend_lock.hpp"

#include <algorithm>
#include <boost/asio/bind_executor.hpp>

#include "acquisition.hpp"
#include "holdfast/spi/owner.hpp"
#include "lease_impl.hpp"

namespace holdfast {

error_code BackendLock::refuse() const noexcept {
    const Engine& engine = *client_->engine;
    if (engine.forked()) return make_error_code(errc::forked);
    if (engine.closed()) return make_error_code(errc::closed);
    return {};
}

std::string BackendLock::place() const {
    return client_->engine->place + info_->name;
}

std::unique_ptr<Lock> BackendLock::clone() const {
    return std::make_unique<BackendLock>(client_, info_);
}

result<spi::Units> BackendLock::units_of(const AcquireOptions& o) const {
    constexpr std::uint32_t most_permits = 256;
    const bool shared = o.mode == Mode::shared;
    std::string what, remedy;
    error_code ec = make_error_code(errc::bad_config);
    if (shared && info_->kind != Kind::shared_mutex) {
        ec = make_error_code(errc::not_supported);
        what = "a " + std::string(to_string(info_->kind)) + " has no shared mode";
        remedy = "Make the lock with kind = shared_mutex.";
    } else if (info_->kind != Kind::semaphore && o.permits != 1) {
        what = "a " + std::string(to_string(info_->kind)) + " has no permits";
        remedy = "Make the lock with kind = semaphore, or leave permits out.";
    } else if (info_->kind == Kind::semaphore &&
               (o.permits == 0 || o.permits > std::min(info_->limit, most_permits))) {
        what = std::to_string(o.permits) + " permits of " + std::to_string(info_->limit) +
               " cannot be held at once";
        remedy = "Ask for 1 to " + std::to_string(std::min(info_->limit, most_permits)) + ".";
    } else if (info_->kind == Kind::semaphore) {
        return spi::Units{o.permits, info_->limit, Mode::exclusive};
    } else {
        return spi::Units{shared ? 1 : spi::Units::all, spi::Units::all, o.mode};
    }
    if (o.diagnostics != nullptr)
        o.diagnostics->add(info_->name, std::move(what), std::move(remedy));
    return ec;
}

result<Lease> BackendLock::do_acquire(const AcquireOptions& options, std::stop_token stop) const {
    Engine& engine = *client_->engine;
    if (const auto ec = refuse()) return ec;
    const auto units = units_of(options);
    if (!units) return units.error();
    if (engine.on_engine_thread()) return make_error_code(errc::would_deadlock);
    if (stop.stop_requested()) return make_error_code(errc::cancelled);

    const auto started = boot_clock::now();
    std::string owner = spi::make_owner(options.note);
    const bool may_wait = options.wait > milliseconds::zero();
    if (may_wait && info_->busy.load(std::memory_order_relaxed))
        return wait_on_engine(std::move(owner), options, *units, stop, started);
    auto lane = engine.lanes().borrow();
    if (!lane) return wait_on_engine(std::move(owner), options, *units, stop, started);

    spi::Attempt a;
    info_->describe(a);
    a.owner = owner;
    a.units = *units;
    a.sent = started;
    a.deadline = started +
                 std::min(info_->request_timeout, may_wait ? options.wait : info_->request_timeout);
    Counters::add(engine.counters.attempts);
    lane->attempt(a);
    if (std::holds_alternative<spi::Attempt::Granted>(a.outcome)) {
        info_->busy.store(false, std::memory_order_relaxed);
        if (const auto facts = LeaseImpl::facts_of(a, started)) {
            auto grant = LeaseImpl::make(client_->engine, client_, info_, std::move(owner),
                                         std::move(a.place), *facts);
            if (!engine.closed()) return Lease(std::move(grant));
            // close() may have been through before there was a lease that it could give up.
            grant->give_back(*lane);
            return make_error_code(errc::closed);
        }
        a.outcome = spi::Attempt::NoAnswer{make_error_code(errc::unavailable)};
    }
    if (std::holds_alternative<spi::Attempt::Busy>(a.outcome) && !may_wait) {
        Counters::add(engine.counters.contended);
        const auto ec = make_error_code(errc::contended);
        if (options.diagnostics != nullptr)
            explain(*options.diagnostics, engine.resolved, ec, a.detail);
        return ec;
    }
    // Busy, in doubt, or not reached: the engine waits, finds out and tries again.
    return wait_on_engine(std::move(owner), options, *units, stop, started, std::move(lane), &a);
}

result<Lease> BackendLock::wait_on_engine(std::string owner, const AcquireOptions& options,
                                          const spi::Units& units, const std::stop_token& stop,
                                          boot_clock::time_point started, Lanes::Loan lane,
                                          spi::Attempt* left) const {
    auto latch = std::make_shared<OneShot<Acquisition::SyncResult>>();
    Acquisition::Caller caller{{}, latch, options.diagnostics};
    auto waiter = std::make_shared<Acquisition>(client_->engine, client_, info_, std::move(owner),
                                                units, options.wait, started, std::move(caller));
    if (left != nullptr) waiter->adopt(*left);
    client_->engine->submit(waiter);
    lane.give_back();  // last: close() waits for lanes first, then for the engine
    const std::stop_callback on_stop(stop, [&] {
        client_->engine->post([waiter] { waiter->cancel(make_error_code(errc::cancelled)); });
    });
    // The engine notifies every waiter at its deadline, and all of them when it closes.
    auto [ec, lease] = latch->take();
    if (ec) return ec;
    return std::move(lease);
}

void BackendLock::do_async_acquire(const AcquireOptions& options, Handler handler) const {
    Engine& engine = *client_->engine;
    if (engine.forked()) return;  // the child has no thread that could complete it
    if (const auto ec = refuse()) return engine.complete(std::move(handler), ec, Lease());
    const auto units = units_of(options);
    if (!units) return engine.complete(std::move(handler), units.error(), Lease());
    auto slot = asio::get_associated_cancellation_slot(handler);
    Acquisition::Caller caller{std::move(handler), nullptr, options.diagnostics};
    auto waiter = std::make_shared<Acquisition>(client_->engine, client_, info_,
                                                spi::make_owner(options.note), *units, options.wait,
                                                boot_clock::now(), std::move(caller));
    if (slot.is_connected())
        slot.assign([weak = std::weak_ptr<Acquisition>(waiter),
                     e = client_->engine->weak_from_this()](asio::cancellation_type) {
            const auto engine_alive = e.lock();
            if (!engine_alive) return;
            engine_alive->post([weak] {
                if (const auto w = weak.lock()) w->cancel(make_error_code(errc::cancelled));
            });
        });
    engine.submit(waiter);
}

}  // namespace holdfast
