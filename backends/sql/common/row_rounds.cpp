#include "row_rounds.hpp"

namespace holdfast::sql {
namespace {

struct Group {
    Steps steps;
    std::optional<spi::NameState> state;
    bool ghosts = false;  ///< the row keeps late requests from acquiring
    bool opened = false;  ///< nobody held it, and now others may come in beside
};
using Groups = std::map<std::string_view, Group>;

Groups grouped(const Steps& steps) {
    Groups groups;
    for (ServerStep* s : steps)
        groups[s->key].steps.push_back(s);
    return groups;
}

/// What was judged counts, and so do the marks.
void settle(const Group& g) {
    for (ServerStep* s : g.steps) {
        s->done = true;
        s->marked = s->marks;
    }
}

/// What the row says of these steps. True when it has to be written.
bool judge(Table& t, Group& g, const TableRow& row) {
    g.state = row.state();
    for (ServerStep* s : g.steps) {
        s->marks = false;
        if (!g.state) {
            s->foreign(t.server.errors.make(Error::foreign_row));
            continue;
        }
        if (is_attempt(s) && t.has_left(*s, row)) {
            s->refused(make_error_code(errc::closed),
                       spi::Attempt::Failed{make_error_code(errc::closed)});
            continue;
        }
        const bool alone = g.state->holders.empty();
        const bool marked = std::exchange(s->marked, false);
        s->run(*g.state);
        s->marks = std::exchange(s->marked, marked);
        s->placed = row.placed;
        s->holder = row.columns.owner;
        if (std::holds_alternative<spi::Attempt::Busy>(s->outcome))
            s->outcome = spi::Attempt::Busy{look_within(s->left_us, s->ttl), t.polls};
        const bool granted = std::holds_alternative<spi::Attempt::Granted>(s->outcome);
        g.opened = g.opened || (alone && granted && !s->units.exclusive());
    }
    if (!g.state || (!g.state->changed && !g.ghosts)) {
        settle(g);
        return false;
    }
    // What was judged counts once it is written.
    for (ServerStep* s : g.steps)
        s->done = false;
    return true;
}

Change change_of(const std::string& key, const Group& g, const TableRow& row) {
    Change c;
    c.key = key;
    c.row = &row;
    c.columns = columns_of(*g.state, row.columns);
    c.deadline = boot_clock::time_point::max();
    for (const ServerStep* s : g.steps) {
        c.deadline = std::min(c.deadline, s->deadline);
        c.synced = c.synced || s->kind == Step::Kind::renew ||
                   std::holds_alternative<spi::Attempt::Granted>(s->outcome);
        c.tells = c.tells || s->freed;
    }
    c.tells = c.tells || g.opened;
    return c;
}

/// So often one tries again at once to leave its first mark.
constexpr int most_misses = 16;

/// Where others have changed the row meanwhile, renewals, releases and those whose turn it is by
/// their marks try again at once; so does one that has waited for long and has no mark yet, since
/// later ones pass it. The others let them through: with many clients each would mostly
/// meet another's change.
void yield(const Steps& steps) {
    for (ServerStep* s : still_open(steps)) {
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

/// The versions of rows that were left out of a write: who meets the same one again waits for
/// somebody's transaction.
using LeftOut = std::map<std::string, std::string, std::less<>>;

/// Writes what was judged. Those steps stay open whose rows were changed by others meanwhile, or
/// are locked.
void write_out(Table& t, Groups& groups, const std::vector<Change>& changes, const Steps& steps,
               milliseconds patience) {
    if (changes.empty()) return;
    Written written;
    const Reply said = t.write(changes, written, patience);
    std::vector<std::string> told;
    for (const Change& change : changes) {
        Group& g = groups[change.key];
        if (const auto at = written.find(change.key); at != written.end()) {
            settle(g);
            if (g.opened) t.server.found_free = true;
            if (at->second && change.tells) told.push_back(change.key);
        } else if (said.failed) {
            not_run(t.server, g.steps, said);
        } else {
            yield(g.steps);
        }
    }
    if (!told.empty()) t.tell_all(told, last_deadline(steps));
}

/// Each of these rows by itself, for a moment: the leases of other rows wait behind them.
void write_locked(Table& t, Groups& groups, const std::vector<Change>& changes,
                  const Steps& steps) {
    constexpr milliseconds all{100}, each{20};
    const auto until = boot_clock::now() + all;
    Reply locked;
    locked.failed = {t.server.errors.make(Error::timed_out), "somebody else has locked the row"};
    for (const Change& change : changes) {
        if (boot_clock::now() < until)
            write_out(t, groups, {change}, steps, changes.size() > 1 ? each : all);
        else
            not_run(t.server, groups[change.key].steps, locked);
    }
}

/// Reads, judges and writes once; those steps stay open whose rows were changed by others
/// meanwhile, or are locked.
void one_round(Table& t, const Steps& steps, LeftOut& left_out) {
    TableRows rows;
    Reply said = t.read(keys_of(steps), last_deadline(steps), rows);
    said.nothing_done = true;
    if (!went_well(t.server, said, steps)) return;
    for (ServerStep* s : steps)
        if (s->queue) s->ticket = t.server.ticket_us(s->came);
    Groups groups = grouped(steps);
    std::vector<std::string> absent;
    std::vector<Change> changes, locked;
    for (auto& [key, g] : groups) {
        TableRow& row = rows[std::string(key)];
        for (const ServerStep* s : g.steps)
            if (s->kind == Step::Kind::withdraw) g.ghosts = t.lay_ghost(*s, row) || g.ghosts;
        const bool any_attempt = std::any_of(g.steps.begin(), g.steps.end(), is_attempt);
        if (!row.present && (any_attempt || g.ghosts)) {
            absent.emplace_back(key);
        } else if (judge(t, g, row)) {
            const auto at = left_out.find(key);
            const bool same = at != left_out.end() && at->second == row.version;
            (same ? locked : changes).push_back(change_of(std::string(key), g, row));
        }
    }
    if (!absent.empty()) {
        said = t.ensure(absent, last_deadline(steps));
        said.nothing_done = true;  // a free row at most
        if (said.failed) {
            for (const auto& key : absent)
                went_well(t.server, said, groups[key].steps);
        }
    }
    left_out.clear();
    for (const Change& change : changes)
        if (changes.size() > 1) left_out.emplace(change.key, change.row->version);
    write_out(t, groups, changes, steps, milliseconds(100));
    write_locked(t, groups, locked, steps);
}

}  // namespace

void not_run(const Server& server, const Steps& steps, const Reply& said) {
    const bool locked =
        said.nothing_done && said.failed.why == server.errors.make(Error::timed_out);
    for (ServerStep* s : steps) {
        if (locked && is_attempt(s) && s->ghost == 0) {
            s->done = true;
            s->left_us = 0;
            s->outcome = spi::Attempt::Busy{just_missed, true};
        } else {
            refuse(server, *s, said);
        }
    }
}

void run_rounds(Table& t, Steps steps) {
    if (steps.empty()) return;
    for (ServerStep* s : steps)
        s->open_again();
    // The clock of the server is known from the connection.
    Reply said;
    said.failed = t.open(last_deadline(steps));
    if (!went_well(t.server, said, steps)) return;
    Steps asking, off;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(asking), is_attempt);
    const Server::InFlight until_answered(t.server, asking, off);
    said.failed = make_error_code(errc::closed);
    went_well(t.server, said, off);
    if (const Steps on = still_open(steps); on.size() == 1 && t.alone(*on.front())) return;
    for (LeftOut left_out;;) {
        const auto now = boot_clock::now();
        Steps open;
        for (ServerStep* s : still_open(steps)) {
            // What close() has taken back must not be asked for again.
            const bool closing = is_attempt(s) && t.server.ending();
            said.failed =
                closing ? make_error_code(errc::closed) : t.server.errors.make(Error::no_answer);
            if (now < s->deadline && !closing)
                open.push_back(s);
            else
                refuse(t.server, *s, said);
        }
        if (open.empty()) return;
        one_round(t, open, left_out);
    }
}

spi::Answer<spi::Survey> survey(Table& t, const std::string& key, boot_clock::time_point deadline) {
    TableRows rows;
    const Reply said = t.read({key}, deadline, rows);
    if (said.failed) return said.failed;
    const auto state = rows[key].state();
    return state ? state->survey() : spi::Survey();
}

spi::Answer<spi::Survey> tell(Table& t, const std::string& key, const HolderFilter& which,
                              spi::Tell what, boot_clock::time_point deadline) {
    spi::Survey reached;
    for (bool written = false; !written;) {
        TableRows rows;
        Reply said = t.read({key}, deadline, rows);
        if (said.failed) return said.failed;
        const TableRow& row = rows[key];
        auto state = row.state();
        if (!state) return t.server.errors.make(Error::foreign_row);
        auto told = state->tell(which, what);
        if (!told) return told;
        reached = std::move(*told);
        if (!state->changed) break;
        Written done;
        const Change change{key, &row, columns_of(*state, row.columns), deadline, true};
        said = t.write({change}, done, milliseconds(100));
        if (said.failed) return said.failed;
        written = !done.empty();
        if (!written && boot_clock::now() >= deadline)
            return t.server.errors.make(Error::no_answer);
    }
    if (what == spi::Tell::gone) t.tell_all({key}, deadline);
    return reached;
}

}  // namespace holdfast::sql
