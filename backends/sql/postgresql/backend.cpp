#include "backend.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "errors.hpp"
#include "questions.hpp"

namespace holdfast::postgresql {
namespace {

Place& place_of(std::shared_ptr<void>& place) {
    if (!place) place = std::make_shared<Place>();
    return *static_cast<Place*>(place.get());
}

constexpr milliseconds leave_patience{2000};

Step leaving(std::string key, boot_clock::time_point deadline) {
    Step s;
    s.kind = Step::Kind::leave;
    s.key = std::move(key);
    s.deadline = deadline;
    return s;
}

}  // namespace

Step step_of(const Shared& shared, Step::Kind kind, const spi::Attempt& a) {
    Step s;
    s.kind = kind;
    s.key = shared.options.prefix;
    s.key += a.name;
    s.owner = a.owner;
    s.deadline = a.deadline;
    s.ttl = a.ttl;
    if (a.place) s.ghost = static_cast<const Place*>(a.place.get())->ghost;
    return s;
}

Step step_of(const Shared& shared, Step::Kind kind, const spi::Held& h) {
    Step s;
    s.kind = kind;
    s.key = shared.options.prefix;
    s.key += h.name;
    s.owner = h.owner;
    s.deadline = h.deadline;
    s.ttl = h.ttl;
    s.token = static_cast<std::int64_t>(h.token.value);
    s.how = h.how;
    if (h.place) s.ghost = static_cast<const Place*>(h.place.get())->ghost;
    return s;
}

void take(Step&& s, const Shared& shared, spi::Attempt& a) {
    a.outcome = s.outcome;
    a.detail = std::move(s.detail);
    if (std::holds_alternative<spi::Attempt::Doubt>(a.outcome)) {
        Place& p = place_of(a.place);
        p.touched = true;
        p.ghost = std::max(p.ghost, shared.server_us(a.deadline));
    } else if (std::holds_alternative<spi::Attempt::Granted>(a.outcome)) {
        // Core may find that nobody wants it any more, or that it came too late.
        place_of(a.place).touched = true;
    }
}

Backend::Backend(const spi::Settings& settings, spi::Context context)
    : capabilities_(promises()),
      context_(context),
      shared_(std::make_shared<Shared>(settings, context.engine)),
      line_(std::make_shared<Line>(context)),
      grants_(std::make_shared<Worker>(shared_, context.engine)),
      keeping_(std::make_shared<Worker>(shared_, context.engine)),
      listener_(std::make_shared<Listener>(shared_, context, grants_, line_)) {
    shared_->warn = [sink = &context_.sink](std::string text) { sink->warn(std::move(text)); };
}

Backend::~Backend() {
    stop();
}

void Backend::stop() noexcept {
    line_->close();
    shared_->watchdog->close();
    listener_->close();
    grants_->close();
    keeping_->close();
}

error_code Backend::gone() const noexcept {
    return shared_->watchdog->closing() ? make_error_code(errc::closed) : make(Error::no_answer);
}

std::shared_ptr<Job> Backend::job(std::size_t steps) const {
    auto made = std::make_shared<Job>(context_.engine);
    made->steps.reserve(steps);
    return made;
}

spi::awaitable<void> Backend::attempt(std::span<spi::Attempt* const> items) {
    auto work = job(items.size());
    std::vector<spi::Attempt*> asked;
    const auto now = boot_clock::now();
    for (spi::Attempt* a : items) {
        Step s = step_of(*shared_, Step::Kind::attempt, *a);
        const auto plan = line_->plan(s.key, *a, now);
        if (plan == Line::Plan::wait) {
            line_->enter(s.key, a->owner, now);
            a->outcome = spi::Attempt::Busy{line_->pause(s.key, a->ttl, now), false};
            continue;
        }
        s.expect_free = plan == Line::Plan::take;
        s.behind = plan == Line::Plan::stand;
        if (a->queue) line_->place(s, now, *shared_);
        work->deadline = std::max(work->deadline, a->deadline);
        work->steps.push_back(std::move(s));
        asked.push_back(a);
    }
    if (!line_->empty()) listener_->want();
    if (asked.empty()) co_return;
    auto run = grants_->run(work);
    const bool answered = co_await std::move(run);
    const auto then = boot_clock::now();
    for (std::size_t i = 0; i < asked.size(); ++i) {
        spi::Attempt& a = *asked[i];
        if (!answered) {
            Step lost = step_of(*shared_, Step::Kind::attempt, a);
            lost.outcome = spi::Attempt::Doubt{gone()};
            take(std::move(lost), *shared_, a);
            continue;
        }
        Step& s = work->steps[i];
        line_->heard(s, now, then);
        const bool granted = std::holds_alternative<spi::Attempt::Granted>(s.outcome);
        const bool busy = std::holds_alternative<spi::Attempt::Busy>(s.outcome);
        if (granted && line_->leave(a.owner)) leave_line(s.key);
        if (busy && a.queue) {
            line_->enter(s.key, a.owner, now);
            line_->heard(s, now, then);
        }
        take(std::move(s), *shared_, a);
    }
    if (!line_->empty()) listener_->want();
}

void Backend::leave_line(const std::string& key) {
    auto work = job(1);
    work->deadline = boot_clock::now() + leave_patience;
    work->steps.push_back(leaving(key, work->deadline));
    // Nobody waits for the answer: who is told in vain passes it on.
    auto run = keeping_->run(std::move(work));
    asio::co_spawn(context_.engine, std::move(run), asio::detached);
}

spi::awaitable<error_code> Backend::withdraw(std::span<spi::Attempt* const> items) {
    auto work = job(items.size());
    for (const spi::Attempt* a : items) {
        if (line_->leave(a->owner)) {
            work->steps.push_back(
                leaving(shared_->options.prefix + std::string(a->name), a->deadline));
            work->deadline = std::max(work->deadline, a->deadline);
        }
        if (!a->place || !static_cast<const Place*>(a->place.get())->touched) continue;
        work->steps.push_back(step_of(*shared_, Step::Kind::withdraw, *a));
        work->deadline = std::max(work->deadline, a->deadline);
    }
    if (work->steps.empty()) co_return error_code();
    auto run = keeping_->run(work);
    const bool answered = co_await std::move(run);
    if (!answered) co_return gone();
    error_code first;
    for (const Step& s : work->steps) {
        if (s.freed && !s.handed_on) line_->freed(s.key);
        if (s.kind == Step::Kind::withdraw && s.error && !first) first = s.error;
    }
    co_return first;
}

spi::awaitable<void> Backend::renew(std::span<spi::Held* const> items) {
    auto work = job(items.size());
    for (const spi::Held* h : items) {
        work->steps.push_back(step_of(*shared_, Step::Kind::renew, *h));
        work->deadline = std::max(work->deadline, h->deadline);
    }
    auto run = keeping_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < items.size(); ++i) {
        items[i]->renewal = spi::Held::Renewal::unknown;
        items[i]->renewal_error = gone();
        if (!answered) continue;
        items[i]->renewal = work->steps[i].renewal;
        items[i]->renewal_error = work->steps[i].error;
    }
}

spi::awaitable<void> Backend::release(std::span<spi::Held* const> items) {
    auto work = job(items.size());
    for (const spi::Held* h : items) {
        work->steps.push_back(step_of(*shared_, Step::Kind::release, *h));
        work->deadline = std::max(work->deadline, h->deadline);
    }
    auto run = keeping_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < items.size(); ++i) {
        items[i]->released = ReleaseResult::unreachable;
        if (!answered) continue;
        items[i]->released = work->steps[i].released;
        const Step& s = work->steps[i];
        items[i]->handed_on = s.handed_on;
        if (s.handed_on)
            line_->handed_on(s.key);
        else if (s.freed)
            line_->freed(s.key);
    }
}

template <class T, class Ask>
spi::awaitable<result<T>> Backend::question(Ask ask, boot_clock::time_point deadline,
                                            std::string* detail) {
    struct Answer {
        result<T> value = make_error_code(errc::unavailable);
        std::string detail;
    };
    auto answer = std::make_shared<Answer>();
    auto work = job(0);
    work->deadline = deadline;
    work->ask = [answer, ask = std::move(ask)](Connection& c) {
        try {
            answer->value = ask(c, answer->detail);
        } catch (const std::exception& e) {
            c.close();
            answer->detail = e.what();
        }
    };
    auto run = grants_->run(work);
    const bool answered = co_await std::move(run);
    if (!answered) co_return gone();
    *detail = std::move(answer->detail);
    co_return std::move(answer->value);
}

spi::awaitable<result<Inspection>> Backend::inspect(std::string_view name,
                                                    boot_clock::time_point deadline,
                                                    std::string& detail) {
    auto ask = [name = std::string(name), deadline](Connection& c, std::string& words) {
        return postgresql::inspect(c, name, deadline, words);
    };
    return question<Inspection>(std::move(ask), deadline, &detail);
}

spi::awaitable<result<std::vector<std::string>>> Backend::list(std::string_view prefix,
                                                               std::size_t limit,
                                                               boot_clock::time_point deadline,
                                                               std::string& detail) {
    auto ask = [prefix = std::string(prefix), limit, deadline](Connection& c, std::string& words) {
        return postgresql::list(c, prefix, limit, deadline, words);
    };
    return question<std::vector<std::string>>(std::move(ask), deadline, &detail);
}

spi::awaitable<result<Broken>> Backend::break_lock(std::string_view name,
                                                   std::optional<FencingToken> if_token, bool now,
                                                   boot_clock::time_point deadline,
                                                   std::string& detail) {
    auto ask = [name = std::string(name), if_token, now, deadline, line = line_](
                   Connection& c, std::string& words) {
        auto broken = postgresql::break_lock(c, name, if_token, now, deadline, words);
        if (broken && now) line->freed_elsewhere(c.shared().options.prefix + name);
        return broken;
    };
    return question<Broken>(std::move(ask), deadline, &detail);
}

spi::awaitable<result<Capabilities>> Backend::probe(boot_clock::time_point deadline,
                                                    std::string& detail) {
    auto ask = [deadline](Connection& c, std::string& words) {
        return postgresql::probe(c, deadline, words);
    };
    return question<Capabilities>(std::move(ask), deadline, &detail);
}

std::unique_ptr<spi::Lane> Backend::open_lane() {
    return make_lane(shared_, line_);
}

spi::awaitable<void> Backend::close() {
    stop();
    co_return;
}

}  // namespace holdfast::postgresql
