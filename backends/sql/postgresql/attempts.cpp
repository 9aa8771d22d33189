// Attempts: the grant itself, and what a waiter has to know when there is none.
#include "exchange.hpp"

namespace holdfast::postgresql {
namespace {

/// For rows that somebody else has locked: grants wait behind it.
constexpr milliseconds stand_patience{100};

/// `r` has the token, the previous holder, and whether a client waits, from column `at` on.
void granted(Connection& c, Step& s, const pqxx::row& r, int at) {
    s.granted(number(r, at), sql::previous_of(number(r, at + 1)));
    s.placed = s.next > 0;
    if (column(r, at + 2) == "t") c.shared().lines.saw(s.key, true);
}

bool held_by_another(const TableRow& row, const Step& s) {
    return row.held() && row.columns.owner != s.owner;
}

void busy(Step& s, const TableRow& row) {
    s.done = true;
    s.placed = row.placed;
    s.holder = row.columns.owner;
    s.left_us = row.columns.expires - row.now;
    s.outcome = spi::Attempt::Busy{look_within(s.left_us, s.ttl), false};
}

void grant(Connection& c, Steps steps) {
    if (steps.empty()) return;
    const auto deadline = [&](const Step& s) { return c.shared().server_us(s.deadline); };
    // First of all, as the server's clock is known from the connection.
    Said said;
    said.failed = c.open(last_deadline(steps));
    if (!went_well(c, said, steps)) return;
    Steps off;
    const Shared::InFlight asking(c.shared(), steps, off);
    said.failed = make_error_code(errc::closed);
    went_well(c, said, off);
    if (steps.size() > 1) {
        exchange(c, Sql::grant_many, steps,
                 {keys(steps), owners(steps), ttls(steps), array(steps, deadline), c.shared().me,
                  array(steps, [](const Step& s) { return s.next; })},
                 [&](Step& s, const pqxx::row& r) { granted(c, s, r, 1); });
    } else if (!steps.empty()) {
        Step& s = *steps.front();
        said = c.run(
            Sql::grant,
            {s.key, s.owner, text(s.ttl.count()), text(deadline(s)), c.shared().me, text(s.next)},
            s.deadline);
        if (!went_well(c, said, steps)) return;
        for (const auto& r : said.rows)
            granted(c, s, r, 0);
    }
}

/// Those that may be free, unless an earlier wave has seen a holder.
void grant_at_first(Connection& c, const Steps& wave, TableRows& known, Steps& unplaced) {
    Steps first;
    for (Step* s : wave) {
        const auto at = known.find(s->key);
        if (s->behind) {
            s->done = true;
            s->left_us = std::chrono::microseconds(courtesy).count();
            s->outcome = spi::Attempt::Busy{courtesy, false};
            unplaced.push_back(s);
        } else if (at != known.end() && held_by_another(at->second, *s)) {
            busy(*s, at->second);
        } else if (s->expect_free) {
            first.push_back(s);
        }
    }
    grant(c, first);
    for (const Step* s : first) {
        if (!std::holds_alternative<spi::Attempt::Granted>(s->outcome)) continue;
        TableRow row;
        row.present = true;
        row.placed = s->placed;
        row.columns.owner = s->owner;
        row.columns.expires = spi::to_us(s->ttl);
        known.insert_or_assign(s->key, std::move(row));
    }
}

/// Those whose rows are free, as it seems.
void grant_again(Connection& c, const Steps& again, TableRows& known) {
    grant(c, again);
    for (Step* s : still_open(again)) {
        s->done = true;
        // The row may be locked by an earlier statement of the same owner that was
        // never answered, in the middle of its commit: it waits for the disk, or for a standby. So
        // this is not "busy", which would end the doubt about that one.
        if (s->ghost != 0)
            s->outcome = spi::Attempt::Failed{make(Error::conflict), true};
        else
            s->outcome = spi::Attempt::Busy{just_missed, true};
        known.erase(s->key);
    }
}

/// They are busy, or left alone for a moment: a place in line, so that a release notifies us.
void stand(Connection& c, const Steps& unplaced, TableRows& known) {
    if (unplaced.empty()) return;
    std::map<std::string_view, Step*> first;  // of each name, who waits longest
    for (Step* s : unplaced) {
        Step*& one = first.try_emplace(s->key, s).first->second;
        if (s->since < one->since) one = s;
    }
    Steps one_each;
    for (const auto& [key, s] : first)
        one_each.push_back(s);
    const auto register_in = [&](const Steps& steps) {
        const auto since = array(steps, [](const Step& s) { return s.since; });
        const auto anyway =
            array(steps, [](const Step& s) { return std::int64_t{s.behind || s.general}; });
        const Said stood =
            c.run(Sql::stand, {array_of(keys_of(steps)), since, c.shared().me, anyway},
                  last_deadline(unplaced));
        for (const auto& r : stood.rows) {
            const auto at = known.find(column(r, 0));
            if (at != known.end()) at->second.placed = true;
            for (Step* s : unplaced)
                if (s->key == column(r, 0)) s->placed = true;
        }
        return stood.failed.why;
    };
    Steps heard = unplaced;
    if (const error_code failed = register_in(one_each)) {
        // Somebody else has locked one of the rows: the others do not wait for it.
        if (failed != make(Error::timed_out) || one_each.size() == 1) return;
        const auto until = boot_clock::now() + stand_patience;
        for (Step* s : one_each)
            if (boot_clock::now() < until) (void)register_in({s});
        std::erase_if(heard,
                      [](const Step* s) { return !s->placed; });  // the next look tries again
    }
    for (Step* s : heard) {
        // Something may have been given back before it stood there, of which nobody told it.
        if (s->placed && !s->general) continue;
        s->left_us = 0;  // released between the two, or somebody is just at it
        s->outcome = spi::Attempt::Busy{milliseconds(1), true};
    }
}

}  // namespace

void attempt_general(Connection& c, const Steps& steps, TableRows& known) {
    Steps unplaced;
    for (Step* s : steps) {
        s->general = true;
        known.erase(s->key);
    }
    run_general(c, steps);
    for (Step* s : steps)
        if (std::holds_alternative<spi::Attempt::Busy>(s->outcome) && s->since != 0 && !s->placed)
            unplaced.push_back(s);
    stand(c, unplaced, known);
}

void attempt_wave(Connection& c, const Steps& wave, TableRows& known) {
    Steps unplaced;
    grant_at_first(c, wave, known, unplaced);
    const Steps open = still_open(wave);
    if (open.empty()) return stand(c, unplaced, known);
    TableRows rows;
    Said said = read(c, keys_of(open), last_deadline(open), rows);
    said.nothing_done = true;  // what was asked before was answered with "not yours"
    if (!went_well(c, said, open)) return;
    Steps missing, again, general;
    for (Step* s : open) {
        TableRow& row = rows[s->key];
        if (!row.present) {
            missing.push_back(s);
            again.push_back(s);
        } else if (!row.columns_only()) {
            general.push_back(s);
        } else if (held_by_another(row, *s) || (row.held() && row.columns.revoked)) {
            busy(*s, row);
            known.insert_or_assign(s->key, std::move(row));
            if (s->since != 0 && !s->placed) unplaced.push_back(s);
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
    grant_again(c, again, known);
    stand(c, unplaced, known);
    attempt_general(c, general, known);
}

}  // namespace holdfast::postgresql
