#include "watch.hpp"

#include <algorithm>

#include "clocks.hpp"

namespace holdfast::sqlite {

bool Watch::answers(Step& s) const {
    const auto it = names_.find(s.key);
    // A row of the asker's own is for the table to find: its first answer may have been lost.
    if (it == names_.end() || !s.units.exclusive()) return false;
    if (it->second.holder.empty() || it->second.holder == s.owner) return false;
    const std::int64_t left = it->second.held_until - boot_us();
    if (left <= 0) return false;
    s.outcome = spi::Attempt::Busy{spi::NameState::poll_within(left), false};
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
    for (auto& [key, name] : names_)
        name.held_until = 0;
    next_expiry_ = 0;
}

void Watch::held(Name& name, std::string owner, std::int64_t left_us) {
    name.holder = std::move(owner);
    name.held_until = boot_us() + left_us;
    next_expiry_ = std::min(next_expiry_, name.held_until);
}

void Watch::seen(const std::string& key, const spi::NameState& state, const sql::Columns& row) {
    const auto it = names_.find(key);
    if (it == names_.end()) return;
    const bool alone = row.text.empty() && !state.holders.empty();
    held(it->second, alone ? row.owner : std::string(), state.next_end());
}

void Watch::leave(const std::string& owner) {
    const auto at = line_of_.find(owner);
    if (at == line_of_.end()) return;
    if (const auto it = names_.find(at->second); it != names_.end()) {
        std::erase(it->second.line, owner);
        if (it->second.line.empty()) names_.erase(it);
    }
    line_of_.erase(at);
}

bool Watch::record(const Step& s) {
    bool news = true;
    if (s.kind == Step::Kind::attempt && s.queue &&
        std::holds_alternative<spi::Attempt::Busy>(s.outcome)) {
        news = line_of_.try_emplace(s.owner, s.key).second;
        if (news) names_[s.key].line.push_back(s.owner);
    } else if (s.kind == Step::Kind::attempt || s.kind == Step::Kind::withdraw) {
        leave(s.owner);
    }
    const auto it = names_.find(s.key);
    if (it == names_.end()) return news;
    const auto* granted = std::get_if<spi::Attempt::Granted>(&s.outcome);
    const bool now_held = s.kind == Step::Kind::attempt && granted != nullptr;
    if (now_held && s.plain()) held(it->second, s.owner, spi::to_us(granted->ttl));
    if (s.freed || (now_held && !s.plain())) {
        it->second.held_until = 0;
        next_expiry_ = 0;
    }
    return news;
}

std::vector<std::string> Watch::look_around(Connection& c) {
    std::vector<std::string> wake, beside;
    const std::int64_t now = boot_us();
    if (now < next_expiry_) return wake;
    next_expiry_ = now + 1'000'000;
    Row row;
    for (auto& [key, name] : names_) {
        if (name.held_until <= now) {
            const auto state =
                look(c, key, row) == SQLITE_OK ? row.state() : std::optional<spi::NameState>();
            if (state && row.columns.text.empty() && !state->holders.empty()) {
                held(name, row.columns.owner, state->next_end());
            } else if (state && !row.columns.text.empty()) {
                // Who may come in beside them, only each of those that wait can find out.
                beside.insert(beside.end(), name.line.begin(), name.line.end());
                held(name, {}, state->next_end());
            } else {
                // It enters again when another one was faster; then those behind had their turn.
                wake.push_back(name.line.front());
                next_expiry_ = 0;
                continue;
            }
        }
        next_expiry_ = std::min(next_expiry_, name.held_until);
    }
    for (const std::string& owner : wake)
        leave(owner);
    wake.insert(wake.end(), beside.begin(), beside.end());
    return wake;
}

}  // namespace holdfast::sqlite
