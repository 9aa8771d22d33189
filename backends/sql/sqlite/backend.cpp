#include "backend.hpp"

#include <filesystem>

#include "errors.hpp"
#include "questions.hpp"

namespace holdfast::sqlite {
namespace {

std::shared_ptr<Place> place_of(const spi::Settings& settings) {
    auto place = std::make_shared<Place>();
    std::error_code ec;  // the working directory may be gone; then the path stays as it is
    const auto absolute = std::filesystem::absolute(settings.path, ec);
    place->path = ec ? settings.path : absolute.lexically_normal().string();
    place->name_prefix = settings.text("namespace");
    place->extra = settings.text("synchronous") == "extra";
    return place;
}

error_code gone(bool closing) noexcept {
    return make_error_code(closing ? errc::closed : errc::unavailable);
}

constexpr const char* hung = "the disk did not answer within the request time-out";

}  // namespace

Capabilities promised() noexcept {
    using enum Capability;
    return {SafetyClass::b,
            {fencing, cross_process, renewal, previous_holder, inspect, list, break_lock,
             survives_client_clock_jump, survives_server_crash}};
}

Step step_of(const Place& place, Step::Kind kind, const spi::Attempt& a) {
    Step s;
    s.kind = kind;
    s.key = place.name_prefix;
    s.key += a.name;
    s.owner = a.owner;
    s.deadline = a.deadline;
    s.ttl = a.ttl;
    s.queue = a.queue;
    return s;
}

Step step_of(const Place& place, Step::Kind kind, const spi::Held& h) {
    Step s;
    s.kind = kind;
    s.key = place.name_prefix;
    s.key += h.name;
    s.owner = h.owner;
    s.deadline = h.deadline;
    s.ttl = h.ttl;
    s.token = static_cast<std::int64_t>(h.token.value);
    s.how = h.how;
    return s;
}

Backend::Backend(const spi::Settings& settings, spi::Context context)
    : capabilities_(promised()),
      place_(place_of(settings)),
      context_(context),
      worker_(std::make_shared<Worker>(place_, context)) {}

Backend::~Backend() {
    worker_->close();
}

std::shared_ptr<Job> Backend::job(std::size_t steps) const {
    auto made = std::make_shared<Job>(context_.engine);
    made->steps.reserve(steps);
    made->deadline = boot_clock::time_point::min();
    return made;
}

spi::awaitable<void> Backend::attempt(std::span<spi::Attempt* const> items) {
    auto work = job(items.size());
    for (const spi::Attempt* a : items) {
        work->steps.push_back(step_of(*place_, Step::Kind::attempt, *a));
        work->deadline = std::max(work->deadline, a->deadline);
    }
    auto run = worker_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (answered) {
            items[i]->outcome = work->steps[i].outcome;
            items[i]->detail = std::move(work->steps[i].detail);
        } else if (place_->closing) {
            items[i]->outcome = spi::Attempt::Failed{gone(true)};
        } else {
            items[i]->outcome = spi::Attempt::Doubt{gone(false)};
            items[i]->detail = hung;
        }
    }
}

spi::awaitable<error_code> Backend::withdraw(std::span<spi::Attempt* const> items) {
    auto work = job(items.size());
    for (const spi::Attempt* a : items) {
        work->steps.push_back(step_of(*place_, Step::Kind::withdraw, *a));
        work->deadline = std::max(work->deadline, a->deadline);
    }
    auto run = worker_->run(work);
    const bool answered = co_await std::move(run);
    if (!answered) co_return gone(place_->closing);
    for (const Step& s : work->steps)
        if (s.error) co_return s.error;
    co_return error_code();
}

spi::awaitable<void> Backend::renew(std::span<spi::Held* const> items) {
    auto work = job(items.size());
    for (const spi::Held* h : items) {
        work->steps.push_back(step_of(*place_, Step::Kind::renew, *h));
        work->deadline = std::max(work->deadline, h->deadline);
    }
    auto run = worker_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < items.size(); ++i) {
        items[i]->renewal = spi::Held::Renewal::unknown;
        items[i]->renewal_error = gone(place_->closing);
        if (!answered) continue;
        items[i]->renewal = work->steps[i].renewal;
        items[i]->renewal_error = work->steps[i].error;
    }
}

spi::awaitable<void> Backend::release(std::span<spi::Held* const> items) {
    auto work = job(items.size());
    for (const spi::Held* h : items) {
        work->steps.push_back(step_of(*place_, Step::Kind::release, *h));
        work->deadline = std::max(work->deadline, h->deadline);
    }
    auto run = worker_->run(work);
    const bool answered = co_await std::move(run);
    for (std::size_t i = 0; i < items.size(); ++i)
        items[i]->released = answered ? work->steps[i].released : ReleaseResult::unreachable;
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
        if (c.place().closing)
            answer->value = make_error_code(errc::closed);
        else
            answer->value = ask(c, answer->detail);
    };
    auto run = worker_->run(work);
    const bool answered = co_await std::move(run);
    if (!answered) {
        *detail = hung;
        co_return gone(place_->closing);
    }
    *detail = std::move(answer->detail);
    co_return std::move(answer->value);
}

spi::awaitable<result<Inspection>> Backend::inspect(std::string_view name,
                                                    boot_clock::time_point deadline,
                                                    std::string& detail) {
    auto ask = [name = std::string(name), deadline](Connection& c, std::string& words) {
        return sqlite::inspect(c, name, deadline, words);
    };
    return question<Inspection>(std::move(ask), deadline, &detail);
}

spi::awaitable<result<std::vector<std::string>>> Backend::list(std::string_view prefix,
                                                               std::size_t limit,
                                                               boot_clock::time_point deadline,
                                                               std::string& detail) {
    auto ask = [prefix = std::string(prefix), limit, deadline](Connection& c, std::string& words) {
        return sqlite::list(c, prefix, limit, deadline, words);
    };
    return question<std::vector<std::string>>(std::move(ask), deadline, &detail);
}

spi::awaitable<result<Broken>> Backend::break_lock(std::string_view name,
                                                   std::optional<FencingToken> if_token, bool now,
                                                   boot_clock::time_point deadline,
                                                   std::string& detail) {
    auto ask = [name = std::string(name), if_token, now, deadline](Connection& c,
                                                                   std::string& words) {
        auto broken = sqlite::break_lock(c, name, if_token, now, deadline, words);
        if (broken && now) kick_neighbours(c.file());
        return broken;
    };
    return question<Broken>(std::move(ask), deadline, &detail);
}

spi::awaitable<result<Capabilities>> Backend::probe(boot_clock::time_point deadline,
                                                    std::string& detail) {
    auto ask = [deadline](Connection& c, std::string& words) -> result<Capabilities> {
        Capabilities found = promised();
        if (const auto ec = sqlite::probe(c, found, deadline, words)) return ec;
        return found;
    };
    return question<Capabilities>(std::move(ask), deadline, &detail);
}

std::unique_ptr<spi::Lane> Backend::open_lane() {
    return make_lane(place_);
}

spi::awaitable<void> Backend::close() {
    worker_->close();
    co_return;
}

}  // namespace holdfast::sqlite
