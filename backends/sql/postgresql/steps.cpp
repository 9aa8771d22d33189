#include "steps.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "errors.hpp"

namespace holdfast::postgresql {
namespace {

using Steps = std::vector<Step*>;
using Rows = std::map<std::string, Row, std::less<>>;

/// A row that is free, or was, and could not be had: somebody is just at it.
constexpr milliseconds just_missed{10};
/// How long a release goes on to tell after somebody said that he waits.
constexpr milliseconds wanted_for{5000};

std::string text(std::int64_t n) {
    return std::to_string(n);
}

std::string_view column(const pqxx::row& r, int at) {
    const auto f = r[static_cast<pqxx::row::size_type>(at)];
    return f.is_null() ? std::string_view() : std::string_view(f.c_str());
}

std::int64_t number(const pqxx::row& r, int at) {
    const auto f = r[static_cast<pqxx::row::size_type>(at)];
    return f.is_null() ? 0 : f.as<std::int64_t>();
}

PreviousHolder verdict(std::int64_t mark) noexcept {
    switch (mark) {
        case 0:
            return PreviousHolder::none;
        case mark_released:
            return PreviousHolder::released;
        case mark_abandoned:
            return PreviousHolder::abandoned;
        case mark_crashed:
            return PreviousHolder::crashed;
        default:
            return PreviousHolder::unknown;
    }
}

/// Writes an error of the whole statement, or of the way to it, into one step.
void refuse(Step& s, const Said& said) {
    s.error = said.error;
    s.detail = said.detail;
    s.done = true;
    if (said.nothing_done)
        s.outcome = spi::Attempt::Failed{said.error};
    else
        s.outcome = spi::Attempt::Doubt{said.error};
    s.renewal = spi::Held::Renewal::unknown;
    s.released = ReleaseResult::unreachable;
}

boot_clock::time_point last_deadline(const Steps& steps) {
    auto last = boot_clock::time_point::min();
    for (const Step* s : steps)
        last = std::max(last, s->deadline);
    return last;
}

std::vector<std::string> keys_of(const Steps& steps) {
    std::vector<std::string> keys;
    for (const Step* s : steps)
        keys.push_back(s->key);
    return keys;
}

std::string array_of(const std::vector<std::string>& texts) {
    ArrayText a;
    for (const auto& t : texts)
        a.add(std::string_view(t));
    return a.take();
}

template <class F>
std::string array(const Steps& steps, F&& value) {
    ArrayText a;
    for (const Step* s : steps)
        a.add(value(*s));
    return a.take();
}

std::string keys(const Steps& steps) {
    return array(steps, [](const Step& s) { return std::string_view(s.key); });
}
std::string owners(const Steps& steps) {
    return array(steps, [](const Step& s) { return std::string_view(s.owner); });
}
std::string tokens(const Steps& steps) {
    return array(steps, [](const Step& s) { return s.token; });
}
std::string ttls(const Steps& steps) {
    return array(steps, [](const Step& s) { return std::int64_t{s.ttl.count()}; });
}

std::int64_t mark_of(const Step& s) noexcept {
    return s.how == Outcome::done ? mark_released : mark_abandoned;
}

/// Several waves where one name is there more than once: in each, names are distinct.
template <class F>
void in_waves(Steps steps, F&& run) {
    while (!steps.empty()) {
        Steps wave, later;
        std::unordered_map<std::string_view, Step*> seen;
        for (Step* s : steps)
            (seen.try_emplace(s->key, s).second ? wave : later).push_back(s);
        run(wave);
        steps = std::move(later);
    }
}

/// Runs one statement for the steps and gives each returned row to the step of its name. Steps
/// without a row stay open. An error is written into all of them.
template <class F>
bool exchange(Connection& c, Sql sql, const Steps& steps, const std::vector<std::string>& p,
              F&& with_row) {
    Said said = c.run(sql, p, last_deadline(steps));
    if (said.error) {
        for (Step* s : steps)
            refuse(*s, said);
        return false;
    }
    std::unordered_map<std::string_view, Step*> by_key;
    for (Step* s : steps)
        by_key.emplace(s->key, s);
    for (const auto& row : said.rows) {
        const auto at = by_key.find(column(row, 0));
        if (at != by_key.end()) with_row(*at->second, row);
    }
    return true;
}

Steps still_open(const Steps& steps) {
    Steps open;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(open),
                 [](const Step* s) { return !s->done; });
    return open;
}

// --- attempts
// -----------------------------------------------------------------------------------

void granted(Step& s, std::int64_t token, std::int64_t previous) {
    s.done = true;
    s.outcome =
        spi::Attempt::Granted{{static_cast<std::uint64_t>(token)}, verdict(previous), s.ttl, {}};
}

void busy(Step& s, const Row& row) {
    s.done = true;
    s.holder = row.owner;
    s.left_us = row.left_us;
    s.outcome = spi::Attempt::Busy{look_again(row.left_us, s.ttl), false};
}

/// False when an error was written into the steps.
bool grant(Connection& c, const Steps& steps) {
    if (steps.empty()) return true;
    const auto deadline = [&](const Step& s) { return c.shared().server_us(s.deadline); };
    // The clock's offset is known only after the first connection.
    if (!c.is_open()) {
        Said said;
        said.error = c.open(last_deadline(steps), said.detail);
        if (said.error) {
            for (Step* s : steps)
                refuse(*s, said);
            return false;
        }
    }
    if (steps.size() > 1)
        return exchange(
            c, Sql::grant_many, steps,
            {keys(steps), owners(steps), ttls(steps), array(steps, deadline)},
            [](Step& s, const pqxx::row& r) { granted(s, number(r, 1), number(r, 2)); });
    Step& s = *steps.front();
    Said said =
        c.run(Sql::grant, {s.key, s.owner, text(s.ttl.count()), text(deadline(s))}, s.deadline);
    if (said.error) {
        refuse(s, said);
        return false;
    }
    for (const auto& r : said.rows)
        granted(s, number(r, 0), number(r, 1));
    return true;
}

void attempt_wave(Connection& c, const Steps& wave, Rows& known) {
    Steps first, missing, again, told;
    for (Step* s : wave) {
        // An earlier wave has seen who holds it.
        const auto at = known.find(s->key);
        if (at != known.end() && at->second.live() && at->second.owner != s->owner)
            busy(*s, at->second);
        else if (s->expect_free)
            first.push_back(s);
    }
    grant(c, first);
    for (const Step* s : first) {
        if (!std::holds_alternative<spi::Attempt::Granted>(s->outcome)) continue;
        Row row;
        row.owned = true;
        row.owner = s->owner;
        row.left_us = std::int64_t{s->ttl.count()} * 1000;
        known.insert_or_assign(s->key, std::move(row));
    }
    const Steps open = still_open(wave);
    if (open.empty()) return;
    std::vector<std::pair<std::string, Row>> rows;
    const Said said = look(c, keys_of(open), last_deadline(open), rows);
    if (said.error) {
        // What was asked before was answered with "not yours".
        Said nothing = said;
        nothing.nothing_done = true;
        for (Step* s : open)
            refuse(*s, nothing);
        return;
    }
    for (auto& [key, row] : rows)
        known.insert_or_assign(key, std::move(row));
    for (Step* s : open) {
        const auto at = known.find(s->key);
        if (at == known.end()) {
            missing.push_back(s);
            again.push_back(s);
        } else if (!at->second.plain) {
            s->done = true;
            s->outcome = spi::Attempt::Failed{make(Error::foreign_row)};
        } else if (at->second.live() && (at->second.owner != s->owner || at->second.revoked)) {
            busy(*s, at->second);
            if (s->queue && !at->second.wanted) told.push_back(s);
        } else {
            again.push_back(s);
        }
    }
    if (!missing.empty() &&
        !exchange(c, Sql::ensure, missing, {keys(missing)}, [](Step&, const pqxx::row&) {})) {
        for (Step* s : missing)
            s->outcome = spi::Attempt::Failed{s->error};  // a free row at most
        again = still_open(again);
    }
    grant(c, again);
    for (Step* s : still_open(again)) {
        s->done = true;
        s->outcome = spi::Attempt::Busy{just_missed, true};
        known.erase(s->key);
    }
    if (told.empty()) return;
    Steps gone = told;
    const Said want =
        c.run(Sql::want, {array_of(keys_of(told)), text(wanted_for.count())}, last_deadline(told));
    if (want.error) return;  // a hint: without it the next look finds out
    for (const auto& r : want.rows)
        std::erase_if(gone, [&](const Step* s) { return s->key == column(r, 0); });
    for (Step* s : gone) {  // released between the two
        s->left_us = 0;
        s->outcome = spi::Attempt::Busy{milliseconds(1), true};
    }
}

// --- the others
// ---------------------------------------------------------------------------------

Rows look_at(Connection& c, const Steps& steps, Said& said) {
    Rows out;
    std::vector<std::pair<std::string, Row>> rows;
    said = look(c, keys_of(steps), last_deadline(steps), rows);
    for (auto& [key, row] : rows)
        out.insert_or_assign(key, std::move(row));
    if (said.error)
        for (Step* s : steps)
            refuse(*s, said);
    return out;
}

void renew_wave(Connection& c, const Steps& wave) {
    const auto renewed = [](Step& s, const pqxx::row&) {
        s.done = true;
        s.renewal = spi::Held::Renewal::renewed;
    };
    if (!exchange(c, Sql::renew, wave, {keys(wave), owners(wave), tokens(wave), ttls(wave)},
                  renewed))
        return;
    const Steps open = still_open(wave);
    if (open.empty()) return;
    Said said;
    const Rows rows = look_at(c, open, said);
    if (said.error) return;
    for (Step* s : open) {
        s->done = true;
        const auto at = rows.find(s->key);
        const bool ours = at != rows.end() && at->second.plain && at->second.token == s->token;
        if (ours && at->second.revoked) {
            s->renewal = spi::Held::Renewal::lost;
            s->error = make_error_code(errc::revoked);
        } else if (ours && at->second.live() && at->second.owner == s->owner) {
            s->error = make(Error::conflict);  // locked by somebody for a moment: once more, soon
        } else {
            s->renewal = spi::Held::Renewal::lost;
            s->error = make_error_code(errc::lost);
        }
    }
}

void withdraw_all(Connection& c, const Steps& steps) {
    // All owners of one name share a row of the statement.
    struct Leaving {
        std::string owners;
        std::int64_t last = 0;
    };
    std::map<std::string_view, Leaving> names;
    for (const Step* s : steps) {
        Leaving& l = names[s->key];
        l.owners += (l.owners.empty() ? "{\"" : ", \"") + s->owner + "\": " + text(s->ghost);
        l.last = std::max(l.last, s->ghost);
    }
    ArrayText key, owner, last;
    for (const auto& [name, l] : names) {
        key.add(name);
        owner.add(std::string_view(l.owners + "}"));
        last.add(l.last);
    }
    const Said said =
        c.run(Sql::withdraw, {key.take(), owner.take(), last.take()}, last_deadline(steps));
    for (Step* s : steps) {
        if (said.error)
            refuse(*s, said);
        else
            s->done = true;
    }
    if (said.error) return;
    for (const auto& r : said.rows)
        for (Step* s : steps)
            if (s->key == column(r, 0)) s->freed = true;
}

void release_wave(Connection& c, const Steps& wave) {
    const auto released = [](Step& s, const pqxx::row&) {
        s.done = s.freed = true;
        s.released = ReleaseResult::released;
    };
    if (wave.size() > 1) {
        const auto marks = array(wave, mark_of);
        if (!exchange(c, Sql::release_many, wave, {keys(wave), owners(wave), tokens(wave), marks},
                      released))
            return;
    } else {
        Step& s = *wave.front();
        const Said said =
            c.run(Sql::release, {s.key, s.owner, text(s.token), text(mark_of(s))}, s.deadline);
        if (said.error) return refuse(s, said);
        for (const auto& r : said.rows)
            released(s, r);
    }
    // A request of the same owner may still be under way: it must not take the lock again.
    Steps haunted;
    for (Step* s : wave)
        if (s->done && s->ghost > c.shared().server_us(boot_clock::now())) haunted.push_back(s);
    if (!haunted.empty()) withdraw_all(c, haunted);
    const Steps open = still_open(wave);
    if (open.empty()) return;
    Said said;
    const Rows rows = look_at(c, open, said);
    if (said.error) return;
    for (Step* s : open) {
        s->done = true;
        const auto at = rows.find(s->key);
        const Row* row = at == rows.end() ? nullptr : &at->second;
        if (row != nullptr && row->plain && row->token == s->token)
            // Free with our token: an earlier release of ours got through, unless it was broken.
            s->released = !row->owned && !row->revoked ? ReleaseResult::released
                                                       : ReleaseResult::already_expired;
        else
            s->released = row != nullptr && row->live() ? ReleaseResult::owned_by_other
                                                        : ReleaseResult::already_expired;
    }
}

}  // namespace

milliseconds look_again(std::int64_t left_us, milliseconds ttl) noexcept {
    const auto longest = std::max(std::min(ttl / 3, milliseconds(1000)), milliseconds(1));
    return std::clamp(milliseconds(left_us / 1000 + 1), milliseconds(1), longest);
}

Said look(Connection& c, const std::vector<std::string>& names, boot_clock::time_point deadline,
          std::vector<std::pair<std::string, Row>>& rows) {
    Said said = c.run(Sql::look, {array_of(names)}, deadline);
    if (said.error) return said;
    for (const auto& r : said.rows) {
        Row row;
        row.owned = !r[1].is_null();
        row.owner = column(r, 1);
        row.token = number(r, 2);
        row.left_us = row.owned ? number(r, 3) : 0;
        row.held_us = row.owned && !r[4].is_null() ? number(r, 4) : -1;
        row.mark = static_cast<int>(number(r, 5));
        row.revoked = column(r, 6) == "t";
        row.plain = column(r, 7) == "t";
        row.wanted = column(r, 8) == "t";
        c.shared().heard_clock(number(r, 9));
        rows.emplace_back(column(r, 0), std::move(row));
    }
    return said;
}

void run_steps(Connection& c, std::span<Step* const> all) {
    const auto of_kind = [&](Step::Kind kind) {
        Steps steps;
        const auto now = boot_clock::now();
        for (Step* s : all) {
            if (s->kind != kind || s->done) continue;
            if (now < s->deadline) {
                steps.push_back(s);
                continue;
            }
            Said late;
            late.error = make(Error::no_answer);
            refuse(*s, late);
        }
        return steps;
    };
    in_waves(of_kind(Step::Kind::release), [&](const Steps& wave) { release_wave(c, wave); });
    if (const Steps leaving = of_kind(Step::Kind::withdraw); !leaving.empty())
        withdraw_all(c, leaving);
    in_waves(of_kind(Step::Kind::renew), [&](const Steps& wave) { renew_wave(c, wave); });
    Rows known;
    in_waves(of_kind(Step::Kind::attempt),
             [&](const Steps& wave) { attempt_wave(c, wave, known); });
}

void sweep(Connection& c, boot_clock::time_point deadline, std::string& cursor) noexcept {
    try {
        const Said said = c.run(Sql::sweep, {cursor}, deadline);
        cursor.clear();
        if (said.error || said.rows.empty() || number(said.rows[0], 1) < 1000) return;
        cursor = column(said.rows[0], 0);
    } catch (const std::exception&) {
        cursor.clear();
    }
}

}  // namespace holdfast::postgresql
