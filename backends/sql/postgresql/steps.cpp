#include "exchange.hpp"

namespace holdfast::postgresql {
namespace {

/// How its holder ends, as the column `mark` says it.
int mark(const Step& s) {
    return sql::number_of(s.how == Outcome::done ? PreviousHolder::released
                                                 : PreviousHolder::abandoned);
}

/// Somebody else has locked the row: once more, soon.
void locked_now(Connection& c, Step& s) {
    Said said;
    said.failed = make(Error::conflict);
    refuse(c, s, said);
    s.freed = false;
}

/// What the rows say of renewals or releases that a statement did not do. Returns those of mutexes
/// that it could have done, had not somebody else locked the row.
Steps judge_open(Connection& c, const Steps& wave) {
    Steps locked, general;
    const Steps open = still_open(wave);
    TableRows rows;
    if (open.empty() || !went_well(c, read(c, keys_of(open), last_deadline(open), rows), open))
        return locked;
    for (Step* s : open) {
        const TableRow& row = rows[s->key];
        auto state = row.state();
        if (!state)
            s->foreign(make(Error::foreign_row));
        else
            s->run(*state);
        if (state && state->changed) (row.columns_only() ? locked : general).push_back(s);
    }
    run_general(c, general);
    return locked;
}

void renew_wave(Connection& c, const Steps& wave) {
    const auto renewed = [](Step& s, const pqxx::row& r) {
        s.done = true;
        s.renewal = spi::Held::Renewal::renewed;
        if (!r[1].is_null()) s.wanted = sql::asked_in(column(r, 1), s.token);
    };
    if (!exchange(c, Sql::renew, wave, {keys(wave), owners(wave), tokens(wave), ttls(wave)},
                  renewed))
        return;
    for (Step* s : judge_open(c, wave))
        locked_now(c, *s);
}

/// Where more than a mutex is waited for, only the waiters know by their marks whose turn it is,
/// and all are told.
void tell_of(Connection& c, const Steps& contended) {
    Steps in_turn, all;
    for (Step* s : contended)
        (s->general ? all : in_turn).push_back(s);
    if (!all.empty()) tell_all(c, keys_of(all), last_deadline(all));
    if (in_turn.empty()) return;
    for (const std::string& key : tell(c, keys_of(in_turn), last_deadline(in_turn), false))
        for (Step* s : in_turn)
            if (s->key == key) s->handed_on = true;
}

/// Freed, and perhaps waited for: `r` has the name, whether anybody stands in line, and whether
/// there is more of it than the columns say.
void freed(Connection& c, Step& s, const pqxx::row& r, Steps& contended) {
    const bool line = column(r, 1) == "t";
    c.shared().lines.saw(s.key, line);
    s.freed = true;
    s.general = column(r, 2) == "t";
    if (line) contended.push_back(&s);
}

/// Somebody else has locked a row of these for longer than we wait for it. Each by itself then, so
/// that it costs the others nothing; but renewals wait behind all of them. They begin with another
/// one each time, so that none stays behind the locked ones.
template <class F>
void one_by_one(Steps steps, F&& run) {
    if (steps.empty()) return;
    constexpr milliseconds patience{300};
    const auto until = boot_clock::now() + patience;
    const auto first = until.time_since_epoch().count() % static_cast<std::int64_t>(steps.size());
    std::rotate(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end());
    for (Step* s : steps) {
        if (boot_clock::now() >= std::min(until, s->deadline)) return;
        s->open_again();
        run(Steps{s});
    }
}

enum class Absent : bool { made, ignored };

/// `rows`: those that keep a late request out, where there are none yet.
void withdraw_all(Connection& c, const Steps& steps, Absent rows = Absent::made) {
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
    if (!went_well(c, said, steps)) {
        if (steps.size() > 1 && said.failed.why == make(Error::timed_out))
            one_by_one(steps, [&](const Steps& one) { withdraw_all(c, one); });
        return;
    }
    Steps contended, general, absent;
    const auto now = c.shared().server_us(boot_clock::now());
    for (Step* s : steps) {
        const auto its = [&](const pqxx::row& r) { return s->key == column(r, 0); };
        if (rows == Absent::made && s->ghost > now &&
            std::none_of(said.rows.begin(), said.rows.end(), its)) {
            absent.push_back(s);
            continue;
        }
        s->done = true;
        if (!s->fast() || s->marked) general.push_back(s);
    }
    for (const auto& r : said.rows)
        for (Step* s : steps)
            if (s->key == column(r, 0)) freed(c, *s, r, contended);
    tell_of(c, contended);
    // No earlier request of theirs can write the row any more: this has given it another version.
    run_general(c, general);
    if (absent.empty() ||
        !exchange(c, Sql::ensure, absent, {keys(absent)}, [](Step&, const pqxx::row&) {}))
        return;
    withdraw_all(c, absent, Absent::ignored);
}

void keep_out(Connection& c, const Steps& released) {
    sql::keep_out(c.shared(), released, [&](const Steps& leaving) { withdraw_all(c, leaving); });
}

/// Where a line is known of, the same statement notifies its clients. False: an error,
/// which is in the step.
template <class F>
bool release_one(Connection& c, Step& s, F&& released, Steps& contended) {
    const bool hands_on = c.shared().lines.known(s.key);
    std::vector<std::string> parameters{s.key, s.owner, text(s.token), text(mark(s))};
    if (hands_on) parameters.push_back(c.shared().me);
    const Said said = c.run(hands_on ? Sql::hand_on : Sql::release, parameters, s.deadline);
    if (!went_well(c, said, {&s})) return false;
    for (const auto& r : said.rows) {
        released(s, r);
        if (!hands_on) continue;
        s.handed_on = column(r, 3) == "t";
        contended.clear();
    }
    return true;
}

void release_wave(Connection& c, const Steps& wave) {
    Steps contended;
    const auto released = [&](Step& s, const pqxx::row& r) {
        s.done = true;
        s.released = ReleaseResult::released;
        freed(c, s, r, contended);
    };
    if (wave.size() > 1) {
        const auto marks = array(wave, [](const Step& s) { return std::int64_t{mark(s)}; });
        if (!exchange(c, Sql::release_many, wave, {keys(wave), owners(wave), tokens(wave), marks},
                      released))
            return;
    } else if (!release_one(c, *wave.front(), released, contended)) {
        return;
    }
    tell_of(c, contended);
    keep_out(c, wave);
    const Steps locked = judge_open(c, wave);
    for (Step* s : locked)
        locked_now(c, *s);
    if (wave.size() > 1) one_by_one(locked, [&](const Steps& one) { release_wave(c, one); });
}

}  // namespace

std::vector<std::string> tell(Connection& c, const std::vector<std::string>& keys,
                              boot_clock::time_point deadline, bool leave) {
    const Said said =
        c.run(Sql::tell, {array_of(keys), c.shared().me, leave ? "true" : "false"}, deadline);
    std::vector<std::string> others;
    for (const auto& r : said.rows)
        if (column(r, 1) == "t") others.emplace_back(column(r, 0));
    return others;
}

void run_steps(Connection& c, std::span<Step* const> all) {
    enum class Which : std::uint8_t { fast, general, any };
    const auto of_kind = [&](Step::Kind kind, Which which, bool only_line = false) {
        Steps steps;
        const auto now = boot_clock::now();
        for (Step* s : all) {
            if (s->kind != kind || s->only_line != only_line || s->done) continue;
            if (which != Which::any && s->fast() != (which == Which::fast)) continue;
            if (now < s->deadline) {
                steps.push_back(s);
                continue;
            }
            Said late;
            late.failed = make(Error::no_answer);
            refuse(c, *s, late);
        }
        return steps;
    };
    // First, since time runs for them only.
    using enum Step::Kind;
    in_waves(of_kind(renew, Which::fast), [&](const Steps& wave) { renew_wave(c, wave); });
    run_general(c, of_kind(renew, Which::general));
    // Before the others, so that a client that leaves is not notified of what is freed here.
    if (const Steps leaving = of_kind(withdraw, Which::any, true); !leaving.empty())
        tell(c, keys_of(leaving), last_deadline(leaving), true);
    in_waves(of_kind(release, Which::fast), [&](const Steps& wave) { release_wave(c, wave); });
    const Steps released = of_kind(release, Which::general);
    run_general(c, released);
    keep_out(c, released);
    if (const Steps leaving = of_kind(withdraw, Which::any); !leaving.empty())
        withdraw_all(c, leaving);
    TableRows known;
    in_waves(of_kind(attempt, Which::fast),
             [&](const Steps& wave) { attempt_wave(c, wave, known); });
    attempt_general(c, of_kind(attempt, Which::general), known);
}

void sweep(Connection& c, boot_clock::time_point deadline, std::string& cursor) noexcept {
    try {
        const Said said = c.run(Sql::sweep, {cursor}, deadline);
        cursor.clear();
        if (said.failed || said.rows.empty() || number(said.rows[0], 1) < 1000) return;
        cursor = column(said.rows[0], 0);
    } catch (const std::exception&) {
        cursor.clear();
    }
}

}  // namespace holdfast::postgresql
