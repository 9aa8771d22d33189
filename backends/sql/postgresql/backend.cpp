#include "backend.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "errors.hpp"

namespace holdfast::postgresql {
namespace {

OwnerState& state_of(std::shared_ptr<void>& place) {
    if (!place) place = std::make_shared<OwnerState>();
    return *static_cast<OwnerState*>(place.get());
}

constexpr milliseconds leave_patience{2000};
/// What core gives to the end of a backend has to be enough for this, and for stop().
constexpr milliseconds last_words{100};

Step leaving(std::string key, boot_clock::time_point deadline) {
    Step s;
    s.kind = Step::Kind::withdraw;
    s.only_line = true;
    s.key = std::move(key);
    s.deadline = deadline;
    return s;
}

}  // namespace

void take(Step& s, const Shared& shared, spi::Attempt& a) {
    s.tell(a);
    if (std::holds_alternative<spi::Attempt::NoAnswer>(a.outcome)) {
        OwnerState& p = state_of(a.place);
        p.touched = true;
        p.ghost = std::max(p.ghost, shared.latest_us(a.deadline));
    } else if (std::holds_alternative<spi::Attempt::Granted>(a.outcome)) {
        // Core may find that nobody wants it any more, or that it came too late.
        state_of(a.place).touched = true;
    }
    const bool in_doubt = std::holds_alternative<spi::Attempt::NoAnswer>(a.outcome);
    const bool marked = s.marked || (in_doubt && s.general);
    if (marked != OwnerState::of(a.place).marked) state_of(a.place).marked = marked;
}

Backend::Backend(const spi::Settings& settings, const spi::Context& context)
    : sql::Backend<Step, Connection, Questions>(promises(), settings, context),
      shared_(std::make_shared<Shared>(settings, context.engine)),
      waiters_(std::make_shared<Waiters>(context)) {
    shared_->waiters = waiters_;
    shared_->warnings.report_to(&context.events);
    asking_ = std::make_shared<Worker>(shared_, context.engine);
    keeping_ = std::make_shared<Worker>(shared_, context.engine, asking_);
    listener_ = std::make_shared<Listener>(shared_, context, asking_, waiters_);
}

Backend::~Backend() {
    stop();
}

void Backend::stop() noexcept {
    waiters_->close();
    shared_->warnings.report_to(nullptr);
    shared_->watchdog->close();
    listener_->close();
    asking_->close();
    keeping_->close();
}

error_code Backend::gone() const noexcept {
    return shared_->watchdog->closing() ? make_error_code(errc::closed) : make(Error::no_answer);
}

decltype(spi::Attempt::outcome) Backend::not_answered(Step& s) const {
    if (!shared_->call_off(s)) return spi::Attempt::NoAnswer{gone()};
    const bool connecting = !shared_->watchdog->closing() && shared_->connecting();
    return spi::Attempt::Failed{connecting ? make(Error::connecting) : gone(), connecting};
}

spi::awaitable<void> Backend::attempt(std::span<spi::Attempt* const> items) {
    auto work = job();
    std::vector<spi::Attempt*> asked;
    const auto now = boot_clock::now();
    for (spi::Attempt* a : items) {
        if (a->queue) (void)state_of(a->place);
        Step s(Step::Kind::attempt, prefix_, *a);
        if (!s.fast()) {
            if (a->queue && waiters_->hears()) s.since = shared_->server_us(s.came);
            work->add(std::move(s));
            asked.push_back(a);
            continue;
        }
        const auto plan = waiters_->plan(s.key, *a, now);
        if (plan == Waiters::Plan::wait) {
            waiters_->enter(s.key, a->owner, s.came);
            a->outcome = spi::Attempt::Busy{waiters_->pause(s.key, a->ttl, now), false};
            continue;
        }
        s.expect_free = plan == Waiters::Plan::take;
        s.behind = plan == Waiters::Plan::stand;
        if (a->queue) waiters_->place(s, now, *shared_);
        work->add(std::move(s));
        asked.push_back(a);
    }
    if (!waiters_->empty()) listener_->want();
    if (asked.empty()) co_return;
    auto run = asking_->run(work);
    const bool answered = co_await std::move(run);
    const auto then = boot_clock::now();
    for (std::size_t i = 0; i < asked.size(); ++i) {
        spi::Attempt& a = *asked[i];
        if (!answered) {
            Step lost;
            lost.outcome = not_answered(work->steps[i]);
            take(lost, *shared_, a);
            continue;
        }
        Step& s = work->steps[i];
        if (s.fast()) waiters_->heard(s, now, then);
        const bool granted = std::holds_alternative<spi::Attempt::Granted>(s.outcome);
        const bool busy = std::holds_alternative<spi::Attempt::Busy>(s.outcome);
        if (granted && waiters_->leave(a.owner)) leave_line(s.key);
        if (busy && a.queue && !s.fast()) {
            waiters_->enter_beside(s.key, a.owner);
            // We began to listen while it was asked: it does not stand in line yet.
            if (waiters_->hears() && !s.placed)
                s.outcome = spi::Attempt::Busy{milliseconds(1), true};
        } else if (busy && a.queue) {
            waiters_->enter(s.key, a.owner, s.came);
            waiters_->heard(s, now, then);
        }
        take(s, *shared_, a);
    }
    if (!waiters_->empty()) listener_->want();
}

void Backend::leave_line(const std::string& key) {
    auto work = job();
    work->add(leaving(key, boot_clock::now() + leave_patience));
    // No caller waits for the answer: a client notified in vain passes it on.
    auto run = keeping_->run(std::move(work));
    asio::co_spawn(context_.engine, std::move(run), asio::detached);
}

spi::awaitable<void> Backend::withdraw(std::span<spi::Attempt* const> items) {
    auto work = job();
    std::vector<std::pair<spi::Attempt*, std::size_t>> asked;  // and which step is for it
    for (spi::Attempt* a : items) {
        a->withdrawal = {};
        Step s(Step::Kind::withdraw, prefix_, *a);
        if (waiters_->leave(a->owner)) work->add(leaving(s.key, a->deadline));
        if (!OwnerState::of(a->place).touched && !s.marked) continue;
        asked.emplace_back(a, work->steps.size());
        work->add(std::move(s));
    }
    if (work->steps.empty()) co_return;
    auto run = keeping_->run(work);
    const bool answered = co_await std::move(run);
    for (const auto& [attempt, step] : asked)
        attempt->withdrawal = answered ? work->steps[step].error : gone();
    if (!answered) co_return;
    for (const Step& s : work->steps)
        if (s.freed && !s.handed_on) waiters_->freed(s.key);
}

void Backend::heard(const Step& s, spi::Held& h) {
    h.handed_on = s.handed_on;
    if (s.handed_on)
        waiters_->handed_on(s.key);
    else if (s.freed)
        waiters_->freed(s.key);
}

std::unique_ptr<spi::Lane> Backend::open_lane() {
    return make_lane(shared_);
}

spi::awaitable<void> Backend::close() {
    // The server may grant what was asked for and is cut now; nobody would give it back.
    auto work = job();
    const auto deadline = boot_clock::now() + last_words;
    shared_->stop_asking([&](const Step& asked) {
        Step s;
        s.kind = Step::Kind::withdraw;
        s.key = asked.key;
        s.owner = asked.owner;
        s.units = asked.units;
        s.deadline = deadline;
        s.ghost = shared_->latest_us(asked.deadline);
        work->add(std::move(s));
    });
    if (!work->steps.empty()) {
        auto run = keeping_->run(work);
        (void)co_await std::move(run);
    }
    stop();
}

}  // namespace holdfast::postgresql
