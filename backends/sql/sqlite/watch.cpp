#include "watch.hpp"

#include <algorithm>

#include "clocks.hpp"

namespace holdfast::sqlite {

bool Watch::answers(Step& s) const {
    const auto* name = waiters_.find(s.key);
    if (name == nullptr || !s.units.exclusive() || name->holder.empty()) return false;
    // A row of the asker's own is for the table to find: its first answer may have been lost.
    const std::int64_t now = boot_us();
    if (!name->held_by_another(s.owner, now)) return false;
    s.outcome = spi::Attempt::Busy{spi::NameState::poll_within(name->held_until - now), false};
    s.done = true;
    return true;
}

void Watch::refresh(Connection& c) {
    Query q(c.statement(Sql::data_version));
    const std::int64_t now = q.step() == SQLITE_ROW ? q.number(0) : -1;
    // The numbers of a connection begin anew with it.
    if (now != version_ || now == -1 || c.openings() != openings_) forget();
    version_ = now;
    openings_ = c.openings();
}

void Watch::forget() noexcept {
    for (auto& [key, name] : waiters_)
        name.held_until = 0;
    next_expiry_ = 0;
}

void Watch::held(Waiters::Name& name, std::string owner, std::int64_t left_us) {
    name.holder = std::move(owner);
    name.held_until = boot_us() + left_us;
    next_expiry_ = std::min(next_expiry_, name.held_until);
}

void Watch::seen(const std::string& key, const spi::NameState& state, const sql::Columns& row) {
    auto* const name = waiters_.find(key);
    if (name == nullptr) return;
    const bool alone = row.text.empty() && !state.holders.empty();
    held(*name, alone ? row.owner : std::string(), state.next_end());
}

bool Watch::record(const Step& s) {
    bool news = true;
    if (s.kind == Step::Kind::attempt && s.queue &&
        std::holds_alternative<spi::Attempt::Busy>(s.outcome)) {
        news = waiters_.enter(s.key, s.owner, boot_clock::now()) != nullptr;
    } else if (s.kind == Step::Kind::attempt || s.kind == Step::Kind::withdraw) {
        waiters_.leave(s.owner);
    }
    auto* const name = waiters_.find(s.key);
    if (name == nullptr) return news;
    const auto* granted = std::get_if<spi::Attempt::Granted>(&s.outcome);
    const bool now_held = s.kind == Step::Kind::attempt && granted != nullptr;
    if (now_held && s.fast()) held(*name, s.owner, spi::to_us(granted->ttl));
    if (s.freed || (now_held && !s.fast())) {
        name->held_until = 0;
        next_expiry_ = 0;
    }
    return news;
}

std::vector<std::string> Watch::look_around(Connection& c) {
    std::vector<std::string> wake, beside;
    const std::int64_t now = boot_us();
    if (now < next_expiry_) return wake;
    next_expiry_ = now + 1'000'000;
    TableRow row;
    for (auto& [key, name] : waiters_) {
        if (name.held_until <= now) {
            const auto state =
                look(c, key, row) == SQLITE_OK ? row.state() : std::optional<spi::NameState>();
            if (state && row.columns.text.empty() && !state->holders.empty()) {
                held(name, row.columns.owner, state->next_end());
            } else if (state && !row.columns.text.empty()) {
                // Only each waiter can find out whether it fits beside them.
                for (const auto& waiter : name.line)
                    beside.push_back(waiter.owner);
                held(name, {}, state->next_end());
            } else {
                // It enters again when another one was faster; then those behind had their turn.
                wake.push_back(name.first());
                next_expiry_ = 0;
                continue;
            }
        }
        next_expiry_ = std::min(next_expiry_, name.held_until);
    }
    for (const std::string& owner : wake)
        waiters_.leave(owner);
    wake.insert(wake.end(), beside.begin(), beside.end());
    return wake;
}

}  // namespace holdfast::sqlite
