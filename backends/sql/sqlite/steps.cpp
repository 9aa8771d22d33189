#include "steps.hpp"

#include <algorithm>

#include "clocks.hpp"
#include "errors.hpp"

namespace holdfast::sqlite {
namespace {

int finished(int rc) noexcept {
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/// Another's transaction was in the way; no Finding of ours.
bool is_busy(const error_code& why) noexcept {
    return (why.value() & 0xff) == SQLITE_BUSY && why.value() < 1 << 24;
}

/// The file is there and cannot be used for a moment: a caller that may wait goes on asking.
bool cannot_now(const error_code& why) noexcept {
    return is_busy(why) || why == make_error(Finding::older_leases);
}

/// Surely nothing was done.
void refuse(Step& s, const spi::Failure& failed) {
    s.refused(failed, spi::Attempt::Failed{failed.why, cannot_now(failed.why)});
    s.freed = false;
}

/// The transaction under way.
struct Transaction {
    Connection& c;
    std::int64_t last = 0;  ///< token given in it; the file's count is written once, at its end
    bool wrote = false;
};

int count_tokens(Transaction& t) {
    if (t.last == 0) return SQLITE_OK;
    Query q(t.c.statement(Sql::count));
    return finished(q.bind(1, t.last).step());
}

int run_step(Transaction& t, Step& s, TableRow& row) {
    const int rc = look(t.c, s.key, row);
    if (rc != SQLITE_OK) return rc;
    if (row.format != layout_format) {
        refuse(s, {make_error(Finding::newer_format),
                   "the tables have another format since this connection was opened"});
        return SQLITE_OK;
    }
    row.last = std::max(row.last, t.last);
    auto state = row.state();
    if (!state) {
        s.detail = "the row of that name is another kind of lock";
        s.foreign(make_error(Finding::foreign_row));
        return SQLITE_OK;
    }
    s.run(*state);
    if (!state->changed) return SQLITE_OK;
    if (state->token != row.columns.token) t.last = state->token;
    t.wrote = true;
    return write(t.c, s.key, row, *state);
}

/// After these nothing is known of the connection's view of the file.
bool is_fatal(int rc) noexcept {
    switch (rc & 0xff) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN:
        case SQLITE_PROTOCOL:
        case SQLITE_NOMEM:
            return true;
        default:
            return rc == SQLITE_READONLY_DBMOVED;
    }
}

/// The write lock is ours: all steps, and the end of the transaction.
void run_locked(Connection& c, std::span<Step* const> steps) {
    Transaction t{c};
    int rc = SQLITE_OK;
    TableRow row;
    for (Step* s : steps) {
        if (s->done) continue;
        if (boot_clock::now() >= s->deadline) {
            refuse(*s, {make_error(Finding::bad_deadline), "the deadline passed while waiting"});
            continue;
        }
        rc = run_step(t, *s, row);
        if (rc != SQLITE_OK) break;
    }
    if (rc == SQLITE_OK) rc = count_tokens(t);
    bool committing = false;
    if (rc == SQLITE_OK) {
        rc = c.commit();
        committing = rc != SQLITE_OK && t.wrote && c.may_have_committed(rc);
    }
    if (rc == SQLITE_OK) return;
    const spi::Failure failed = c.fail(rc);
    c.rollback();
    if (is_fatal(rc)) c.close();
    for (Step* s : steps) {
        refuse(*s, failed);
        // An unsure sync: the record of the commit may be in the log and come back.
        if (committing) s->outcome = spi::Attempt::NoAnswer{failed.why};
    }
}

boot_clock::time_point first_deadline(std::span<Step* const> steps) noexcept {
    auto first = boot_clock::time_point::max();
    for (const Step* s : steps)
        if (!s->done) first = std::min(first, s->deadline);
    return first;
}

/// Those whose deadline has passed have surely done nothing. False when none is left.
bool drop_late(std::span<Step* const> steps, const spi::Failure& failed) {
    const auto now = boot_clock::now();
    bool left = false;
    for (Step* s : steps) {
        if (s->done) continue;
        if (now >= s->deadline)
            refuse(*s, failed);
        else
            left = true;
    }
    return left;
}

bool run_once(Connection& c, std::span<Step* const> steps) {
    for (;;) {
        spi::Failure failed;
        if (!c.is_open()) failed = c.open(first_deadline(steps));
        if (!failed) {
            const int rc = c.begin(first_deadline(steps));
            if (rc == SQLITE_OK) {
                run_locked(c, steps);
                // It counts for every process that uses that path.
                return !c.is_open() || c.intact();
            }
            failed = c.fail(rc);
            if (is_fatal(rc) || !c.intact()) c.close();
        }
        if (is_busy(failed.why) && !c.database().closing && drop_late(steps, failed)) continue;
        for (Step* s : steps)
            if (!s->done) refuse(*s, failed);
        return true;
    }
}

}  // namespace

std::int64_t left_us(std::int64_t expires, std::int64_t ttl, std::int64_t now) noexcept {
    return sql::lasts(expires, ttl, now) ? expires - now : 0;
}

std::optional<spi::NameState> TableRow::state() const {
    auto found = sql::read_state(columns, boot_us(), true);
    if (found) found->least_token = std::max(last + 1, wall_us());
    return found;
}

int look(Connection& c, std::string_view key, TableRow& row) {
    Query q(c.statement(Sql::look));
    const int rc = q.bind(1, key).step();
    row = TableRow();
    row.columns.span = 0;
    if (rc != SQLITE_ROW) return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    row.format = static_cast<int>(q.number(0));
    row.last = q.number(1);
    row.present = !q.null(3);
    if (!row.present) return SQLITE_OK;
    sql::Columns& found = row.columns;
    found.owner = q.text(2);
    found.token = q.number(3);
    found.expires = q.number(4);
    found.span = std::max<std::int64_t>(q.number(5), 0);
    found.acquired = q.number(6);
    found.mark = static_cast<int>(q.number(7));
    found.previous = static_cast<int>(q.number(8));
    found.revoked = q.number(9) != 0;
    found.text = q.text(10);
    return SQLITE_OK;
}

int write(Connection& c, std::string_view key, const TableRow& row, const spi::NameState& state) {
    const sql::Columns& before = row.columns;
    const sql::Columns after = sql::columns_of(state, before);
    const bool alone = before.text.empty() && after.text.empty();
    const bool same = after.token == before.token && after.revoked == before.revoked;
    if (alone && same && row.present && after.owner.empty()) {
        Query q(c.statement(Sql::release));
        return finished(q.bind(1, key).bind(2, after.mark).step());
    }
    if (alone && same && row.present && after.owner == before.owner) {
        Query q(c.statement(Sql::renew));
        return finished(q.bind(1, key).bind(2, after.expires).bind(3, after.span).step());
    }
    const bool granted = alone && !after.owner.empty() && after.token != before.token;
    Query q(c.statement(granted ? Sql::grant : Sql::write));
    q.bind(1, key).bind(2, std::string_view(after.owner)).bind(3, after.token);
    q.bind(4, after.expires).bind(5, std::string_view(boot_id())).bind(6, after.acquired);
    q.bind(7, after.previous).bind(8, after.span);
    if (granted) return finished(q.step());
    q.bind(9, after.mark).bind(10, std::int64_t{after.revoked});
    return finished(q.bind(11, std::string_view(after.text)).step());
}

void run_steps(Connection& c, std::span<Step* const> steps) {
    if (run_once(c, steps)) return;
    // The file was replaced under the transaction: what it says counts for nobody, unless that file
    // comes back. Once more, on the file that the path leads to now.
    c.close();
    std::vector<Step*> granted;
    for (Step* s : steps) {
        if (std::holds_alternative<spi::Attempt::Granted>(s->outcome)) granted.push_back(s);
        s->done = s->freed = false;
    }
    if (!run_once(c, steps)) {
        for (Step* s : steps) {
            if (std::holds_alternative<spi::Attempt::Granted>(s->outcome)) granted.push_back(s);
            refuse(*s, {make_error(SQLITE_BUSY), "the database file is being replaced"});
        }
    }
    for (Step* s : granted)
        if (const auto* failed = std::get_if<spi::Attempt::Failed>(&s->outcome))
            s->outcome = spi::Attempt::NoAnswer{failed->why};
}

int record(Connection& c, std::string_view key, std::string_view text) {
    const std::string meta = sql::record_text(text);
    Query q(c.statement(Sql::record));
    q.bind(1, key).bind(2, wall_us()).bind(3, std::string_view(boot_id())).bind(4, boot_us());
    return finished(q.bind(5, std::string_view(meta)).step());
}

void sweep(Connection& c, boot_clock::time_point deadline) noexcept {
    constexpr std::int64_t day_us = 86'400'000'000, window = 256;
    if (!c.is_open() || c.begin(deadline) != SQLITE_OK) return;
    try {
        std::vector<std::pair<std::string, std::int64_t>> old;
        std::string last;
        std::int64_t seen = 0;
        {
            Query q(c.statement(Sql::sweep_window));
            q.bind(1, wall_us() - day_us).bind(2, window).bind(3, boot_us());
            for (; q.step() == SQLITE_ROW; ++seen) {
                last = q.text(0);
                if (q.number(2) != 0) old.emplace_back(last, q.number(1));
            }
        }
        if (seen < window) last.clear();
        for (const auto& [key, slot] : old)
            Query(c.statement(Sql::sweep_row)).bind(1, std::string_view(key)).bind(2, slot).step();
        Query(c.statement(Sql::sweep_mark)).bind(1, std::string_view(last)).step();
        if (c.commit() != SQLITE_OK) c.rollback();
    } catch (const std::exception&) {
        c.rollback();
    }
}

}  // namespace holdfast::sqlite
