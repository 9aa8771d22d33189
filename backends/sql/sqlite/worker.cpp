#include "worker.hpp"

#include <algorithm>

#include "clocks.hpp"
#include "errors.hpp"

namespace holdfast::sqlite {
namespace {

constexpr std::chrono::nanoseconds shortest_pause = milliseconds(1),
                                   longest_pause = milliseconds(20);

}  // namespace

void Worker::kick() noexcept {
    {
        const std::lock_guard hold(mutex_);
        if (waiting_ == 0) return;
        kicked_ = true;
    }
    news_.notify_one();
}

void Worker::wait(std::unique_lock<std::mutex>& hold) {
    const auto ready = [this] { return kicked_ || due(); };
    waiting_ = watch_.size();
    if (watch_.empty()) {
        news_.wait(hold, ready);
    } else {
        // Looks get rarer with the time that nothing happened: a release is noticed within a
        // twentieth of the time it was waited for.
        auto pause =
            std::clamp((boot_clock::now() - last_news_) / 20, shortest_pause, longest_pause);
        pause = std::max(pause, pause_);
        const std::chrono::nanoseconds expiry =
            std::chrono::microseconds(watch_.next_expiry() - boot_us());
        pause = std::max(std::min(pause, expiry), shortest_pause / 4);
        news_.wait_for(hold, pause, ready);
    }
    kicked_ = false;
}

void Worker::process(Jobs jobs) {
    if (!jobs.empty()) sql::Worker<Step, Connection>::process(std::move(jobs));
    connection_.checkpoint();
    if (!watch_.empty() && !database_->closing) look_around();
}

/// Attempts at names that somebody else surely holds need no write lock. Once another step does
/// need it, its transaction answers the rest as well.
void Worker::answer_waiters(std::vector<Step*>& steps) {
    const auto attempts = [](const Step* s) { return s->kind == Step::Kind::attempt; };
    if (std::none_of(steps.begin(), steps.end(), attempts)) return;
    if (!connection_.is_open() || !connection_.still_there()) return;
    watch_.refresh(connection_);
    for (Step* s : steps)
        if (attempts(s)) watch_.answers(*s);
    TableRow row;
    for (Step* s : steps) {
        if (s->done) continue;
        if (!attempts(s) || look(connection_, s->key, row) != SQLITE_OK) return;
        if (row.format != layout_format) return;
        auto state = row.state();
        if (!state) return;
        s->run(*state);
        if (state->changed || !std::holds_alternative<spi::Attempt::Busy>(s->outcome)) {
            s->done = false;
            s->outcome = spi::Attempt::Failed{};
            return;
        }
        watch_.seen(s->key, *state, row.columns);
    }
}

void Worker::refuse_attempts(const std::vector<Step*>& steps) const {
    const auto closed = make_error_code(errc::closed);
    for (Step* s : steps)
        if (s->kind == Step::Kind::attempt) s->refused(closed, spi::Attempt::Failed{closed});
}

void Worker::run_all(std::vector<Step*>& steps) {
    if (database_->closing)
        refuse_attempts(steps);
    else
        answer_waiters(steps);
    std::vector<Step*> open;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(open),
                 [](const Step* s) { return !s->done; });
    try {
        if (!open.empty()) run_steps(connection_, open);
    } catch (const std::exception&) {
        // Out of memory in the middle of a transaction, or after it.
        connection_.close();
        for (Step* s : open)
            s->unknown(sql::no_memory());
    }
}

void Worker::run(std::vector<Step*>& steps) {
    run_all(steps);
    for (const Step* s : steps)
        if (watch_.record(*s)) last_news_ = boot_clock::now();
    if (!connection_.is_open()) return;
    if (connection_.file() != joined_) {
        joined_ = connection_.file();
        watch_.forget();
        join_neighbours(joined_, std::static_pointer_cast<Worker>(shared_from_this()));
    }
    if (std::any_of(steps.begin(), steps.end(), [](const Step* s) { return s->freed; }))
        kick_neighbours(joined_);
}

void Worker::look_around() {
    const auto began = boot_clock::now();
    std::vector<std::string> owners;
    if (connection_.is_open() && connection_.intact()) {
        const auto before = watch_.next_expiry();
        watch_.refresh(connection_);
        if (watch_.next_expiry() != before) last_news_ = began;
        owners = watch_.look_around(connection_);
    }
    // Looks of very many names must not fill the thread's time.
    pause_ = (boot_clock::now() - began) * 4;
    if (owners.empty()) return;
    last_news_ = boot_clock::now();
    on_engine([events = &events_, owners = std::move(owners)] {
        for (const std::string& owner : owners)
            events->wake(owner);
    });
}

}  // namespace holdfast::sqlite
