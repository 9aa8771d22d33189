#include "backend.hpp"

#include "errors.hpp"

namespace holdfast::postgresql {
namespace {

constexpr milliseconds leave_patience{2000};

Step leaving(std::string key, boot_clock::time_point deadline) {
    Step s;
    s.kind = Step::Kind::withdraw;
    s.only_line = true;
    s.key = std::move(key);
    s.deadline = deadline;
    return s;
}

}  // namespace

Backend::Backend(const spi::Settings& settings, const spi::Context& context)
    : Backend(settings, context, std::make_shared<Shared>(settings, context.engine)) {}

Backend::Backend(const spi::Settings& settings, const spi::Context& context,
                 std::shared_ptr<Shared> shared)
    : sql::ServerBackend<Connection, Questions>(promises(), settings, context, shared),
      shared_(std::move(shared)),
      waiters_(std::make_shared<Waiters>(context)) {
    shared_->waiters = waiters_;
    asking_ = std::make_shared<Worker>(shared_, context.engine);
    keeping_ = std::make_shared<Worker>(shared_, context.engine, asking_);
    listener_ = std::make_shared<Listener>(shared_, context, asking_, waiters_);
    shared_->reports.on_move = [engine = context.engine, weak = std::weak_ptr(listener_)] {
        asio::post(engine, [weak] {
            if (const auto alive = weak.lock()) alive->again();
        });
    };
}

Backend::~Backend() {
    stop();
}

void Backend::stopping() noexcept {
    waiters_->close();
    listener_->close();
}

spi::awaitable<void> Backend::attempt(std::span<spi::Attempt* const> items) {
    auto work = job();
    std::vector<spi::Attempt*> asked;
    const auto now = boot_clock::now();
    for (spi::Attempt* a : items) {
        if (a->queue) (void)sql::OwnerState::in(a->place);
        Step s(Step::Kind::attempt, prefix_, *a);
        if (!s.fast()) {
            s.expect_free = true;  // where the last such name was free: see alone()
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
            not_answered(work->steps[i], a);
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
        sql::take(s, *shared_, a);
    }
    if (!waiters_->empty()) listener_->want();
}

void Backend::leave_line(const std::string& key) {
    auto work = job();
    work->add(leaving(key, boot_clock::now() + leave_patience));
    // No caller waits for the answer: a client notified in vain passes it on.
    spawn(std::move(work));
}

spi::awaitable<void> Backend::withdraw(std::span<spi::Attempt* const> items) {
    auto work = job();
    std::vector<std::pair<spi::Attempt*, std::size_t>> asked;  // and which step is for it
    for (spi::Attempt* a : items) {
        a->withdrawal = {};
        Step s(Step::Kind::withdraw, prefix_, *a);
        if (waiters_->leave(a->owner)) work->add(leaving(s.key, a->deadline));
        if (!sql::OwnerState::of(a->place).touched && !s.marked) continue;
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

}  // namespace holdfast::postgresql
