#include "holdfast/election.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>

#include "backend_lock.hpp"
#include "backoff.hpp"
#include "complete_on_system.hpp"
#include "holdfast/spi/forwarding_lease.hpp"
#include "holdfast/spi/mapped_handler.hpp"
#include "operator_call.hpp"
#include "silence.hpp"

namespace holdfast {
namespace {

constexpr std::size_t longest_value = 128;

/// Frees the candidate for another campaign when its term has ended.
class Campaign {
public:
    explicit Campaign(std::shared_ptr<std::atomic<bool>> busy) noexcept : busy_(std::move(busy)) {}
    Campaign(Campaign&&) noexcept = default;
    Campaign& operator=(Campaign&&) = delete;
    ~Campaign() {
        if (busy_) *busy_ = false;
    }

private:
    std::shared_ptr<std::atomic<bool>> busy_;
};

class Term final : public spi::ForwardingLease {
public:
    Term(Lease inner, Campaign campaign) noexcept
        : ForwardingLease(std::move(inner)), campaign_(std::move(campaign)) {}
    ReleaseResult release(Outcome o) noexcept override {
        const auto answer = ForwardingLease::release(o);
        campaign_.reset();
        return answer;
    }
    void async_release(Outcome o,
                       asio::any_completion_handler<Lease::ReleaseSignature> h) override {
        campaign_.reset();
        ForwardingLease::async_release(o, std::move(h));
    }
    void drop(Outcome o) noexcept override {
        ForwardingLease::drop(o);
        campaign_.reset();
    }

private:
    std::optional<Campaign> campaign_;
};

}  // namespace

result<Election> Client::make_election(std::string_view name, const LockOptions& options,
                                       Diagnostics* diagnostics) const {
    auto lock = make_lock(name, options, diagnostics);
    if (!lock) return lock.error();
    return Election(std::make_shared<Election::State>(*this, std::move(*lock)));
}

/// Shared with campaigns that have not begun.
struct Election::State {
    State(Client c, std::unique_ptr<Lock> l) : client(std::move(c)), lock(std::move(l)) {}
    error_code begin(std::string_view value, Diagnostics* diagnostics) const {
        const auto refuse = [&](errc e, std::string what, std::string remedy) {
            if (diagnostics != nullptr)
                diagnostics->add(std::string(lock->name()), std::move(what), std::move(remedy));
            return make_error_code(e);
        };
        if (value.size() > longest_value)
            return refuse(errc::bad_config,
                          "a value of " + std::to_string(value.size()) + " bytes is too long",
                          "Use at most 128 bytes, for example an address.");
        if (busy->exchange(true))
            return refuse(errc::would_deadlock, "this candidate campaigns or leads already",
                          "Release the term first, or use an Election of its own.");
        return {};
    }
    const Client client;
    const std::unique_ptr<Lock> lock;
    /// A campaign or its term is under way.
    const std::shared_ptr<std::atomic<bool>> busy = std::make_shared<std::atomic<bool>>(false);
};

Election::Election(std::shared_ptr<State> state) : state_(std::move(state)) {}

result<Lease> Election::campaign(std::string_view value, AcquireOptions options,
                                 std::stop_token stop) const {
    if (const auto ec = state_->begin(value, options.diagnostics)) return ec;
    Campaign campaign(state_->busy);
    options.note = value;
    auto lease = state_->lock->acquire(options, std::move(stop));
    if (!lease) return lease.error();
    return Lease(std::make_shared<Term>(std::move(*lease), std::move(campaign)));
}

void Election::start_campaign(State& state, std::string value, const AcquireOptions& asked,
                              asio::any_completion_handler<Lock::Signature> handler) {
    if (const auto ec = state.begin(value, asked.diagnostics))
        return complete_on_system(std::move(handler), ec, Lease());
    AcquireOptions options = asked;
    options.note = value;
    state.lock->async_acquire(
        options,
        spi::map_handler(std::move(handler), [campaign = Campaign(state.busy)](
                                                 auto&& h, error_code ec, Lease lease) mutable {
            if (!ec) lease = Lease(std::make_shared<Term>(std::move(lease), std::move(campaign)));
            { const Campaign done = std::move(campaign); }
            std::move(h)(ec, std::move(lease));
        }));
}

// --- what any client sees

namespace {

using Seen = std::optional<Leader>;

Seen leader_of(const Inspection& found) {
    if (found.holders.empty()) return {};
    const Holder& h = found.holders.front();
    return Leader{h.note, h.host, h.owner, h.token};
}

spi::awaitable<spi::Answer<Seen>> look(Engine& engine, std::string name,
                                       boot_clock::time_point deadline) {
    auto asking = engine.backend().inspect(name, deadline);
    auto found = co_await std::move(asking);
    if (!found) co_return found.error();
    co_return leader_of(*found);
}

result<OperatorVerb<Seen>> looking(std::string_view name) {
    return OperatorVerb<Seen>(
        [n = std::string(name)](Engine& engine, boot_clock::time_point deadline) {
            return look(engine, n, deadline);
        });
}

/// One call of observe(). Engine thread only.
struct Observation {
    std::string name;
    Seen known;
    boot_clock::time_point started, until;
    bool cancelled = false;
    std::weak_ptr<WatchedNames::Name> watched = {};

    bool is_news(const Seen& seen) const {
        return seen.has_value() != known.has_value() || (known && seen->owner != known->owner);
    }
    void cancel() {
        cancelled = true;
        if (const auto alive = watched.lock()) alive->gate.open();
    }
};

/// How long observers pause between two looks when they are not notified.
class Pauses {
public:
    explicit Pauses(Engine& engine)
        : notified_(engine.backend().capabilities().has(Capability::watch)),
          longest_(notified_ ? engine.timing.ttl : milliseconds(1000)) {}
    /// After a look with that result. A notified observer only makes sure: of a notification that
    /// the server lost, and of the end of a lease, which not every server reports.
    milliseconds after(const Inspection& found) {
        if (!notified_) return std::exchange(next_, std::min(next_ * 2, longest_));
        if (found.holders.empty()) return longest_;
        const auto left = found.holders.front().ttl_left.value_or(longest_) + milliseconds(1);
        return std::clamp(left, shortest, std::max(longest_, shortest));
    }

private:
    static constexpr milliseconds shortest{50};
    const bool notified_;
    const milliseconds longest_;
    milliseconds next_ = shortest;
};

/// What an observer does about looks without an answer: the same as an acquisition. Until the
/// first answer they end it after one request time-out; after that it waits on, and says so.
class Contact {
public:
    Contact(Engine& engine, const Observation& o)
        : engine_(engine),
          o_(o),
          request_timeout_(engine.timing.request(engine.timing.ttl)),
          retry_(engine.timing.backoff_first, engine.timing.backoff_last, true) {}
    boot_clock::time_point deadline(boot_clock::time_point sent) const {
        return sent + request_timeout_;
    }
    void answered() {
        answered_ever_ = true;
        hurried_ = false;
        retry_.reset();
        if (silence_.ends()) tell(Event::Kind::reachable);
    }
    /// When to look again; nothing: it ends with that failure.
    std::optional<boot_clock::time_point> failed(const spi::Failure& failure,
                                                 boot_clock::time_point sent) {
        if (failure.why != errc::unavailable && failure.why != errc::no_quorum) return {};
        const auto now = boot_clock::now();
        const auto until = answered_ever_ ? o_.until : std::min(o_.until, deadline(o_.started));
        const auto next = now + retry_.next();
        if (next >= until) return {};
        if (silence_.lasts(sent, now, request_timeout_)) tell(Event::Kind::unreachable, &failure);
        return next;
    }
    /// Whether a change that was reported during an unanswered look is looked at without a pause:
    /// not twice in a row.
    bool hurries() { return !std::exchange(hurried_, true); }

private:
    void tell(Event::Kind kind, const spi::Failure* failure = nullptr) {
        if (!engine_.events->wanted()) return;
        Event e;
        e.kind = kind;
        e.name = o_.name;
        if (failure != nullptr) e.reason = failure->why, e.text = failure->detail;
        engine_.events->tell(std::move(e));
    }

    Engine& engine_;
    const Observation& o_;
    const milliseconds request_timeout_;
    Backoff retry_;
    Silence silence_;
    bool answered_ever_ = false, hurried_ = false;
};

spi::awaitable<spi::Answer<Seen>> observe_until(Engine& engine, std::shared_ptr<Observation> o) {
    // Watched before the first look, so that none of the changes after it is missed.
    const auto watched = engine.watched.watch(engine.backend(), o->name);
    o->watched = watched;
    Contact contact(engine, *o);
    for (Pauses pauses(engine);;) {
        const auto changes = watched->changes;
        const auto sent = boot_clock::now();
        auto asking = engine.backend().inspect(o->name, contact.deadline(sent));
        auto found = co_await std::move(asking);
        auto next = o->until;
        bool heeds = true;
        if (found) {
            contact.answered();
            auto seen = leader_of(*found);
            if (o->is_news(seen)) co_return seen;
            const auto now = boot_clock::now();
            if (now >= o->until) co_return spi::Failure(errc::timed_out);
            next = std::min(after(now, pauses.after(*found)), o->until);
        } else {
            const auto again = contact.failed(found.error(), sent);
            if (!again) co_return found.error();
            next = *again;
            heeds = contact.hurries();
        }
        while (!o->cancelled && !engine.closed() && (!heeds || watched->changes == changes) &&
               boot_clock::now() < next) {
            auto waiting = watched->gate.wait(engine.executor(), next);
            co_await std::move(waiting);
        }
        if (o->cancelled) co_return spi::Failure(errc::cancelled);
        if (engine.closed()) co_return spi::Failure(errc::closed);
    }
}

result<OperatorVerb<Seen>> observing(const std::shared_ptr<Observation>& o) {
    return OperatorVerb<Seen>(
        [o](Engine& engine, boot_clock::time_point) { return observe_until(engine, o); });
}

}  // namespace

result<Seen> Election::leader(Diagnostics* diagnostics) const {
    return operator_call(state_->client.engine(), looking(state_->lock->name()), diagnostics);
}

void Election::start_leader(State& state, Diagnostics* diagnostics, LeaderHandler handler) {
    start_operator_call(state.client.engine(), looking(state.lock->name()), diagnostics,
                        std::move(handler));
}

result<Seen> Election::observe(const Seen& known, milliseconds wait, std::stop_token stop) const {
    Engine* const engine = state_->client.engine();
    const auto now = boot_clock::now();
    const auto o = std::make_shared<Observation>(
        Observation{std::string(state_->lock->name()), known, now, after(now, wait)});
    const auto verb = observing(o);
    if (const auto ec = refused(engine, verb)) return ec;
    const auto answer = std::make_shared<OneShot<spi::Answer<Seen>>>();
    begin_operator_call<Seen>(*engine, *verb, answer);
    const std::stop_callback on_stop(stop, [&] { engine->post([o] { o->cancel(); }); });
    auto seen = answer->take();
    if (!seen) return seen.error().why;
    return std::move(*seen);
}

void Election::start_observe(State& state, Seen known, milliseconds wait, LeaderHandler handler) {
    Engine* const engine = state.client.engine();
    const auto now = boot_clock::now();
    const auto o = std::make_shared<Observation>(
        Observation{std::string(state.lock->name()), std::move(known), now, after(now, wait)});
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected())
        slot.assign([o, e = engine->weak_from_this()](asio::cancellation_type) {
            if (const auto alive = e.lock()) alive->post([o] { o->cancel(); });
        });
    start_operator_call(engine, observing(o), nullptr, std::move(handler));
}

}  // namespace holdfast
