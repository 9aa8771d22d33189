#include "steps.hpp"

#include <algorithm>

#include "clocks.hpp"
#include "errors.hpp"

namespace holdfast::sqlite {
namespace {

using sql::mark_crashed;

std::int64_t us(milliseconds ms) noexcept {
    return std::int64_t{ms.count()} * 1000;
}

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
void refuse(Step& s, error_code why, const std::string& detail) {
    s.refused(why, detail, spi::Attempt::Failed{why, cannot_now(why)});
    s.freed = false;
}

/// The transaction under way.
struct Transaction {
    Connection& c;
    std::int64_t last = 0;  ///< token given in it; the file's count is written once, at its end
    bool wrote = false;
};

int free_row(Transaction& t, Step& s, int mark) {
    Query q(t.c.statement(Sql::release));
    q.bind(1, std::string_view(s.key)).bind(2, mark);
    t.wrote = s.freed = true;
    return finished(q.step());
}

int renew_row(Transaction& t, const Step& s) {
    Query q(t.c.statement(Sql::renew));
    q.bind(1, std::string_view(s.key)).bind(2, boot_us() + us(s.ttl)).bind(3, us(s.ttl));
    t.wrote = true;
    return finished(q.step());
}

int count_tokens(Transaction& t) {
    if (t.last == 0) return SQLITE_OK;
    Query q(t.c.statement(Sql::count));
    return finished(q.bind(1, t.last).step());
}

int attempt(Transaction& t, Step& s, const Row& row) {
    s.done = true;
    if (!row.plain) {
        s.detail = "the row of that name is another kind of lock";
        s.outcome = spi::Attempt::Failed{make_error(Finding::foreign_row)};
        return SQLITE_OK;
    }
    const bool mine = row.owner == s.owner;
    if (row.state == Row::State::held && mine && !row.revoked) {
        // Asked again, as the first answer was lost: the same grant, from now on.
        s.granted(row.token, row.previous);
        return renew_row(t, s);
    }
    if (row.state == Row::State::held) {
        s.outcome = spi::Attempt::Busy{look_within(row.left_us), false};
        return SQLITE_OK;
    }
    int previous = row.mark;
    if (row.state == Row::State::expired) previous = mine ? row.previous : mark_crashed;
    const std::int64_t token = std::max(std::max(row.last, t.last) + 1, wall_us());
    t.last = token;
    const std::int64_t now = boot_us();
    Query grant(t.c.statement(Sql::grant));
    grant.bind(1, std::string_view(s.key)).bind(2, std::string_view(s.owner)).bind(3, token);
    grant.bind(4, now + us(s.ttl)).bind(5, std::string_view(boot_id())).bind(6, now);
    grant.bind(7, previous).bind(8, us(s.ttl));
    t.wrote = true;
    s.granted(token, previous);
    return finished(grant.step());
}

int withdraw(Transaction& t, Step& s, const Row& row) {
    s.done = true;
    if (!row.plain || row.owner != s.owner || row.state == Row::State::absent) return SQLITE_OK;
    // It was never used: the next holder gets the mark that this one would have got.
    return free_row(t, s, row.previous);
}

int renew(Transaction& t, Step& s, const Row& row) {
    s.done = true;
    s.error = why_lost(row, s);
    s.renewal = s.error ? spi::Held::Renewal::lost : spi::Held::Renewal::renewed;
    return s.error ? SQLITE_OK : renew_row(t, s);
}

int release(Transaction& t, Step& s, const Row& row) {
    s.done = true;
    const bool ours = row.granted_to(s) && row.held() && row.owner == s.owner;
    s.released = ours ? ReleaseResult::released : nothing_to_free(row, s);
    return ours ? free_row(t, s, s.mark()) : SQLITE_OK;
}

int run_step(Transaction& t, Step& s, Row& row) {
    const int rc = look(t.c, s.key, row);
    if (rc != SQLITE_OK) return rc;
    if (row.format != layout_format) {
        refuse(s, make_error(Finding::newer_format),
               "the tables have another format since this connection was opened");
        return SQLITE_OK;
    }
    switch (s.kind) {
        case Step::Kind::attempt:
            return attempt(t, s, row);
        case Step::Kind::withdraw:
            return withdraw(t, s, row);
        case Step::Kind::renew:
            return renew(t, s, row);
        case Step::Kind::release:
            return release(t, s, row);
    }
    return SQLITE_OK;
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
    Row row;
    for (Step* s : steps) {
        if (s->done) continue;
        if (boot_clock::now() >= s->deadline) {
            refuse(*s, make_error(Finding::bad_deadline), "the deadline passed while waiting");
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
    std::string detail;
    const error_code why = c.fail(rc, detail);
    c.rollback();
    if (is_fatal(rc)) c.close();
    for (Step* s : steps) {
        refuse(*s, why, detail);
        // An unsure sync: the record of the commit may be in the log and come back.
        if (committing) s->outcome = spi::Attempt::NoAnswer{why};
    }
}

boot_clock::time_point first_deadline(std::span<Step* const> steps) noexcept {
    auto first = boot_clock::time_point::max();
    for (const Step* s : steps)
        if (!s->done) first = std::min(first, s->deadline);
    return first;
}

/// Those whose deadline has passed have surely done nothing. False when none is left.
bool drop_late(std::span<Step* const> steps, error_code why, const std::string& detail) {
    const auto now = boot_clock::now();
    bool left = false;
    for (Step* s : steps) {
        if (s->done) continue;
        if (now >= s->deadline)
            refuse(*s, why, detail);
        else
            left = true;
    }
    return left;
}

bool run_once(Connection& c, std::span<Step* const> steps) {
    for (;;) {
        std::string detail;
        error_code why;
        if (!c.is_open()) why = c.open(first_deadline(steps), detail);
        if (!why) {
            const int rc = c.begin(first_deadline(steps));
            if (rc == SQLITE_OK) {
                run_locked(c, steps);
                // It counts for every process that uses that path.
                return !c.is_open() || c.intact();
            }
            why = c.fail(rc, detail);
            if (is_fatal(rc) || !c.intact()) c.close();
        }
        if (is_busy(why) && !c.place().closing && drop_late(steps, why, detail)) continue;
        for (Step* s : steps)
            if (!s->done) refuse(*s, why, detail);
        return true;
    }
}

}  // namespace

std::int64_t left_us(std::int64_t expires, std::int64_t ttl, std::int64_t now) noexcept {
    // The clocks of two time namespaces are rounded on their own.
    constexpr std::int64_t rounding = 1000, longest_ttl = 86'400'000'000;
    if (expires < 0) return 0;
    const std::int64_t left = expires - now;
    return left <= std::min(ttl, longest_ttl) + rounding ? left : 0;
}

milliseconds look_within(std::int64_t left) noexcept {
    return milliseconds(std::clamp<std::int64_t>(left / 1000 + 1, 1, 1000));
}

int look(Connection& c, std::string_view key, Row& row) {
    Query q(c.statement(Sql::look));
    const int rc = q.bind(1, key).step();
    row.owner.clear();
    row.state = Row::State::absent;
    row.plain = true, row.revoked = false;
    row.mark = row.previous = row.format = 0;
    row.token = row.left_us = 0, row.held_us = -1;
    if (rc != SQLITE_ROW) return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    row.format = static_cast<int>(q.number(0));
    row.last = q.number(1);
    if (q.null(3)) return SQLITE_OK;
    row.owner = q.text(2);
    row.token = q.number(3);
    row.mark = static_cast<int>(q.number(7));
    row.previous = static_cast<int>(q.number(8));
    row.revoked = q.number(9) != 0;
    row.plain = q.null(10);
    if (q.null(2)) {
        row.state = Row::State::free;
        return SQLITE_OK;
    }
    const std::int64_t now = boot_us();
    row.left_us = left_us(q.number(4), q.number(5), now);
    const std::int64_t acquired = q.number(6);
    row.held_us = acquired >= 0 && acquired <= now ? now - acquired : -1;
    row.state = row.left_us > 0 ? Row::State::held : Row::State::expired;
    return SQLITE_OK;
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
            refuse(*s, make_error(SQLITE_BUSY), "the database file is being replaced");
        }
    }
    for (Step* s : granted)
        if (const auto* failed = std::get_if<spi::Attempt::Failed>(&s->outcome))
            s->outcome = spi::Attempt::NoAnswer{failed->why};
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
            q.bind(1, wall_us() - day_us).bind(2, window);
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
