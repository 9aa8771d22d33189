// Steps that need the whole row: it is read, judged here, and written if it still has the version
// that was read. tests/models/postgresql has the protocol.
#include "exchange.hpp"

namespace holdfast::postgresql {
namespace {

struct Group {
    Steps steps;
    std::optional<spi::NameState> state;
    bool opened = false;  ///< nobody held it, and now others may come in beside
};
using Groups = std::map<std::string_view, Group>;

Groups grouped(const Steps& steps) {
    Groups groups;
    for (Step* s : steps)
        groups[s->key].steps.push_back(s);
    return groups;
}

bool is_attempt(const Step* s) {
    return s->kind == Step::Kind::attempt;
}

/// What was judged counts, and so do the marks.
void settle(const Group& g) {
    for (Step* s : g.steps) {
        s->done = true;
        s->marked = s->marks;
    }
}

/// What the row says of these steps. True when it has to be written.
bool judge(Group& g, const TableRow& row) {
    g.state = row.state();
    for (Step* s : g.steps) {
        s->marks = false;
        if (!g.state) {
            s->foreign(make(Error::foreign_row));
            continue;
        }
        const bool alone = g.state->holders.empty();
        const bool marked = std::exchange(s->marked, false);
        s->run(*g.state);
        s->marks = std::exchange(s->marked, marked);
        s->placed = row.placed;
        s->holder = row.columns.owner;
        if (std::holds_alternative<spi::Attempt::Busy>(s->outcome))
            s->outcome = spi::Attempt::Busy{look_within(s->left_us, s->ttl), false};
        const bool granted = std::holds_alternative<spi::Attempt::Granted>(s->outcome);
        g.opened = g.opened || (alone && granted && !s->units.exclusive());
    }
    if (!g.state || !g.state->changed) {
        settle(g);
        return false;
    }
    // What was judged counts once it is written.
    for (Step* s : g.steps)
        s->done = false;
    return true;
}

Change change_of(const std::string& key, const Group& g, const TableRow& row) {
    Change c;
    c.key = key;
    c.row = &row;
    c.columns = sql::columns_of(*g.state, row.columns);
    c.deadline = boot_clock::time_point::max();
    for (const Step* s : g.steps) {
        c.deadline = std::min(c.deadline, s->deadline);
        c.synced = c.synced || s->kind == Step::Kind::renew ||
                   std::holds_alternative<spi::Attempt::Granted>(s->outcome);
    }
    return c;
}

/// So often one tries again at once to leave its first mark.
constexpr int most_misses = 16;

/// Where others have changed the row meanwhile, renewals, releases and those whose turn it is by
/// their marks try again at once; so does one that has waited for long and has no mark yet, since
/// whoever comes later passes it. The others let them through: with many clients each would mostly
/// meet another's change.
void yield(const Steps& steps) {
    for (Step* s : still_open(steps)) {
        const bool busy = std::holds_alternative<spi::Attempt::Busy>(s->outcome);
        if (!is_attempt(s) || s->ghost != 0 || (s->marked && !busy)) continue;
        if (busy && s->marks && !s->marked && ++s->misses < most_misses) continue;
        s->done = true;
        if (!busy || !s->marked) {
            s->left_us = 0;
            s->outcome = spi::Attempt::Busy{just_missed, true};
        }
    }
}

/// Nothing was done, since somebody else has locked the row.
void missed(const Steps& steps, const Said& said) {
    for (Step* s : steps) {
        if (is_attempt(s) && s->ghost == 0) {
            s->done = true;
            s->left_us = 0;
            s->outcome = spi::Attempt::Busy{just_missed, true};
        } else {
            refuse(*s, said);
        }
    }
}

/// The versions of rows that were left out of a write: who meets the same one again waits for
/// somebody's transaction.
using LeftOut = std::map<std::string, std::string, std::less<>>;

/// Writes what was judged. Those steps stay open whose rows were changed by others meanwhile, or
/// are locked.
void write_out(Connection& c, Groups& groups, const std::vector<Change>& changes,
               const Steps& steps, milliseconds patience) {
    if (changes.empty()) return;
    std::map<std::string, bool, std::less<>> written;
    const Said said = write(c, changes, written, patience);
    std::vector<std::string> told;
    for (const Change& change : changes) {
        Group& g = groups[change.key];
        if (said.failed && said.nothing_done && said.failed.why == make(Error::timed_out)) {
            missed(g.steps, said);
        } else if (said.failed) {
            went_well(said, g.steps);
        } else if (const auto at = written.find(change.key); at != written.end()) {
            settle(g);
            if (g.opened) c.shared().found_free = true;
            if (!at->second) continue;
            const bool freed =
                std::any_of(g.steps.begin(), g.steps.end(), [](const Step* s) { return s->freed; });
            if (freed || g.opened) told.push_back(change.key);
        } else {
            yield(g.steps);
        }
    }
    if (!told.empty()) tell_all(c, told, last_deadline(steps));
}

/// Each of these rows by itself, for a moment: the leases of other rows wait behind them.
void write_locked(Connection& c, Groups& groups, const std::vector<Change>& changes,
                  const Steps& steps) {
    constexpr milliseconds all{100}, each{20};
    const auto until = boot_clock::now() + all;
    Said locked;
    locked.failed = {make(Error::timed_out), "somebody else has locked the row"};
    for (const Change& change : changes) {
        if (boot_clock::now() < until)
            write_out(c, groups, {change}, steps, changes.size() > 1 ? each : all);
        else
            missed(groups[change.key].steps, locked);
    }
}

/// Reads, judges and writes once; those steps stay open whose rows were changed by others
/// meanwhile, or are locked.
void one_round(Connection& c, const Steps& steps, LeftOut& left_out) {
    TableRows rows;
    Said said = read(c, keys_of(steps), last_deadline(steps), rows);
    said.nothing_done = true;
    if (!went_well(said, steps)) return;
    for (Step* s : steps)
        if (s->queue) s->ticket = c.shared().ticket_us(s->came);
    Groups groups = grouped(steps);
    std::vector<std::string> absent;
    std::vector<Change> changes, locked;
    for (auto& [key, g] : groups) {
        const TableRow& row = rows[std::string(key)];
        if (!row.present && std::any_of(g.steps.begin(), g.steps.end(), is_attempt)) {
            absent.emplace_back(key);
        } else if (judge(g, row)) {
            const auto at = left_out.find(key);
            const bool same = at != left_out.end() && at->second == row.version;
            (same ? locked : changes).push_back(change_of(std::string(key), g, row));
        }
    }
    if (!absent.empty()) {
        said = c.run(Sql::ensure, {array_of(absent)}, last_deadline(steps));
        said.nothing_done = true;  // a free row at most
        if (said.failed) {
            for (const auto& key : absent)
                went_well(said, groups[key].steps);
        }
    }
    left_out.clear();
    for (const Change& change : changes)
        if (changes.size() > 1) left_out.emplace(change.key, change.row->version);
    write_out(c, groups, changes, steps, milliseconds(100));
    write_locked(c, groups, locked, steps);
}

/// Where nobody else holds the name, one statement grants it to a reader or to permits, or releases
/// it. True when that is its outcome.
bool alone(Connection& c, Step& s) {
    Shared& shared = c.shared();
    const spi::Units& u = s.units;
    const bool timed = s.lock_delay > milliseconds::zero() || s.min_hold > milliseconds::zero();
    const bool first = is_attempt(&s) && s.expect_free && s.ghost == 0 && !s.marked;
    const bool fits = first || s.kind == Step::Kind::release;
    if (u.exclusive() || timed || !fits || !shared.found_free) return false;
    const std::string take = text(u.take), of = text(u.of),
                      beside = u.mode == Mode::shared ? "t" : "f";
    const Said said = first ? c.run(Sql::grant_free,
                                    {s.key, s.owner, text(spi::to_us(s.ttl)),
                                     text(shared.server_us(s.deadline)), take, of, beside},
                                    s.deadline)
                            : c.run(Sql::release_alone,
                                    {s.key, s.owner, text(s.token), take, of, beside}, s.deadline);
    if (!went_well(said, {&s})) return true;
    if (said.rows.empty()) {
        shared.found_free = false;
        return false;
    }
    const auto& row = said.rows[0];
    if (first) {
        s.granted(number(row, 0), sql::previous_of(number(row, 1)));
    } else {
        s.done = s.freed = true;
        s.released = ReleaseResult::released;
    }
    // More than one may come in beside it, or after it.
    if (column(row, first ? 2 : 1) == "t") tell_all(c, {s.key}, s.deadline);
    return true;
}

}  // namespace

std::optional<spi::NameState> TableRow::state() const {
    auto found = sql::read_state(columns, now, false);
    if (found) found->least_token = now;
    return found;
}

Said read(Connection& c, const std::vector<std::string>& keys, boot_clock::time_point deadline,
          TableRows& rows) {
    rows.clear();
    for (const auto& key : keys)
        rows[key];
    Said said = c.run(Sql::read, {array_of(keys), c.shared().me}, deadline);
    if (said.failed) return said;
    for (const auto& r : said.rows) {
        TableRow& row = rows[std::string(column(r, 0))];
        row.present = true;
        row.columns.owner = column(r, 1);
        row.columns.token = number(r, 2);
        row.columns.expires = number(r, 3);
        row.columns.acquired = number(r, 4);
        row.columns.mark = static_cast<int>(number(r, 5));
        row.columns.previous = static_cast<int>(number(r, 6));
        row.columns.revoked = column(r, 7) == "t";
        row.columns.text = column(r, 8);
        row.version = column(r, 9);
        row.placed = column(r, 10) == "t";
        row.now = number(r, 11);
        c.shared().heard_clock(row.now);
    }
    return said;
}

Said write(Connection& c, const std::vector<Change>& changes,
           std::map<std::string, bool, std::less<>>& done, milliseconds patience) {
    std::array<ArrayText, 11> p;
    auto last = boot_clock::time_point::min();
    bool synced = false;
    for (const Change& one : changes) {
        const sql::Columns& to = one.columns;
        last = std::max(last, one.deadline);
        synced = synced || one.synced;
        p[0].add(std::string_view(one.key));
        p[1].add(std::string_view(one.row->version));
        p[2].add(std::string_view(to.owner));
        p[3].add(to.token);
        p[4].add(to.expires);
        p[5].add(to.acquired);
        p[6].add(std::int64_t{to.mark});
        p[7].add(std::int64_t{to.previous});
        p[8].add(std::string_view(to.revoked ? "t" : "f"));
        p[9].add(std::string_view(to.text));
        p[10].add(c.shared().server_us(one.deadline));
    }
    std::vector<std::string> parameters;
    for (ArrayText& array : p)
        parameters.push_back(array.take());
    parameters.emplace_back(synced ? "on" : "off");
    parameters.push_back(std::to_string(patience.count()) + "ms");
    Said said = c.run(changes.size() > 1 ? Sql::write_many : Sql::write, parameters, last);
    for (const auto& r : said.rows)
        done[std::string(column(r, 0))] = column(r, 1) == "t";
    return said;
}

void tell_all(Connection& c, const std::vector<std::string>& keys,
              boot_clock::time_point deadline) {
    (void)c.run(Sql::tell_all, {array_of(keys), c.shared().me}, deadline);
}

void run_general(Connection& c, Steps steps) {
    if (steps.empty()) return;
    for (Step* s : steps)
        s->open_again();
    // The clock of the server is known from the connection.
    Said said;
    said.failed = c.open(last_deadline(steps));
    if (!went_well(said, steps)) return;
    Steps asking, off;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(asking), is_attempt);
    const Shared::InFlight until_answered(c.shared(), asking, off);
    said.failed = make_error_code(errc::closed);
    went_well(said, off);
    if (const Steps on = still_open(steps); on.size() == 1 && alone(c, *on.front())) return;
    for (LeftOut left_out;;) {
        const auto now = boot_clock::now();
        Steps open;
        for (Step* s : still_open(steps)) {
            said.failed = make(Error::no_answer);
            if (now < s->deadline)
                open.push_back(s);
            else
                refuse(*s, said);
        }
        if (open.empty()) return;
        one_round(c, open, left_out);
    }
}

}  // namespace holdfast::postgresql
