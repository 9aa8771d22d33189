#include "steps.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::mysql {
namespace {

using sql::last_deadline, sql::Steps;
using Kind = Step::Kind;

/// Some statements, each of which changes one row, as one transaction. When that fails for a row
/// that others have locked, or conflicts, each is run by itself, so that it costs the others
/// nothing. `answered` hears of each; its result is null after a failure.
template <class Item, class Make, class Answered>
void run_rows(Connection& c, const std::vector<Item>& items, boot_clock::time_point deadline,
              bool twice, Make&& make_row, Answered&& answered) {
    if (items.empty()) return;
    if (items.size() == 1) {
        Packet one;
        make_row(one, items[0]);
        const Said said = c.run(one, deadline, twice);
        return answered(items[0], said, said.failed ? nullptr : said.results.data());
    }
    Packet all(Sql::begin);
    for (const Item& item : items)
        make_row(all, item);
    all.add(Sql::commit);
    const Said said = c.run(all, deadline, twice);
    const bool alone =
        said.failed && said.nothing_done &&
        (said.number == 1205 || worth_repeating(said.number) || of_preparing(said.number));
    constexpr milliseconds patience{300};
    const auto until = boot_clock::now() + patience;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (alone && boot_clock::now() < until)
            run_rows(c, std::vector<Item>{items[i]}, deadline, twice, make_row, answered);
        else
            answered(items[i], said, said.failed ? nullptr : &said.results[i + 1]);
    }
}

/// More than one row with the same key: only the primary key keeps a name from being granted twice.
Said no_key() {
    Said said;
    said.failed = {make(Error::no_key), "ALTER TABLE holdfast_lease ADD PRIMARY KEY (name, slot)"};
    said.nothing_done = false;
    return said;
}

/// Calls `f` with each owner in the column `gone`, and until when it counts.
template <class F>
void each_ghost(std::string_view gone, F&& f) {
    while (!gone.empty()) {
        const auto end = std::min(gone.find('\n'), gone.size() - 1);
        sql::TextLine line(gone.substr(0, end));
        gone.remove_prefix(end + 1);
        if (!line.word("gone")) continue;
        const auto until = line.number<std::int64_t>();
        const std::string owner = line.owner();
        if (line.good()) f(owner, until);
    }
}

std::int64_t us(milliseconds ms) {
    return spi::to_us(ms);
}

/// Sorted, so that two clients lock rows in the same order; the others of a name follow.
struct Waves {
    Steps first, later;
};
Waves by_name(Steps steps) {
    if (steps.size() < 2) return {std::move(steps), {}};
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step* a, const Step* b) { return a->key < b->key; });
    Waves waves;
    for (Step* s : steps) {
        const bool again = !waves.first.empty() && waves.first.back()->key == s->key;
        (again ? waves.later : waves.first).push_back(s);
    }
    return waves;
}

/// Runs one statement for each step; `done` writes the outcome of one whose row was changed.
/// Returns the steps whose rows say otherwise, and those that share a name with another.
template <class Make, class Done>
Steps run_fast(Connection& c, Steps steps, bool twice, Make&& make_row, Done&& done) {
    if (steps.empty()) return steps;
    Waves waves = by_name(std::move(steps));
    run_rows(c, waves.first, last_deadline(waves.first), twice, make_row,
             [&](Step* s, const Said& said, const Result* result) {
                 if (result == nullptr)
                     sql::not_run(c.shared(), {s}, said);
                 else if (result->affected > 1)
                     sql::refuse(c.shared(), *s, no_key());
                 else if (result->affected == 1)
                     done(*s, *result);
                 else
                     waves.later.push_back(s);
             });
    return waves.later;
}

/// What only the row as a whole can answer.
void run_whole(Connection& c, Steps steps) {
    if (steps.empty()) return;
    Table table(c);
    sql::run_rounds(table, std::move(steps));
}

void renew(Connection& c, Steps steps) {
    const auto row = [](Packet& p, const Step* s) {
        p.add(Sql::renew, {us(s->ttl), s->key, s->owner, s->token});
    };
    run_whole(c, run_fast(c, std::move(steps), true, row, [](Step& s, const Result&) {
                  s.done = true;
                  s.renewal = spi::Held::Renewal::renewed;
              }));
}

void release(Connection& c, Steps steps) {
    const auto row = [](Packet& p, const Step* s) {
        const auto how =
            s->how == Outcome::done ? PreviousHolder::released : PreviousHolder::abandoned;
        p.add(Sql::release, {std::int64_t{sql::number_of(how)}, s->key, s->owner, s->token});
    };
    run_whole(c, run_fast(c, std::move(steps), false, row, [](Step& s, const Result&) {
                  s.done = s.freed = true;
                  s.released = ReleaseResult::released;
              }));
}

/// Of mutexes, in one packet, which also a client that is closing can send; what was granted of
/// other kinds is taken back by the rules.
void withdraw(Connection& c, const Steps& steps) {
    if (steps.empty()) return;
    const auto now = c.shared().server_us(boot_clock::now());
    // A client that is closing has no time for more.
    const std::int64_t longest = c.shared().ending() ? 4096 : 0;
    const auto row = [&](Packet& p, const Step* s) {
        std::string ghost;
        if (s->ghost > now) sql::TextLine::write(ghost, "gone", s->owner, s->ghost);
        p.add(Sql::withdraw, {s->owner, s->owner, s->owner, ghost, s->key, longest});
    };
    Steps whole;
    run_rows(c, steps, last_deadline(steps), true, row,
             [&](Step* s, const Said& said, const Result* result) {
                 const bool columns_only = result != nullptr && result->id % 2 == 1 && !s->marked;
                 s->done = true;
                 s->freed = result != nullptr && result->affected == 1 && result->id >= 4;
                 if (result == nullptr)
                     sql::refuse(c.shared(), *s, said);
                 else if (result->affected == 0 || !columns_only)
                     whole.push_back(s);
             });
    run_whole(c, whole);
}

void attempt(Connection& c, Steps steps) {
    if (steps.empty()) return;
    // First of all, as the server's clock is known from the connection.
    Said said;
    said.failed = c.open(last_deadline(steps));
    if (!sql::went_well(c.shared(), said, steps)) return;
    Steps off, fast, whole;
    for (Step* s : steps)
        (s->fast() && s->expect_free ? fast : whole).push_back(s);
    {
        const Shared::InFlight asking(c.shared(), fast, off);
        said.failed = make_error_code(errc::closed);
        sql::went_well(c.shared(), said, off);
        const auto row = [&](Packet& p, const Step* s) {
            p.add(Sql::grant, {s->owner, us(s->ttl), s->key, s->owner, s->owner,
                               c.shared().server_us(s->deadline)});
        };
        const Steps open = run_fast(c, fast, false, row, [](Step& s, const Result& r) {
            s.granted(static_cast<std::int64_t>(r.id / 8),
                      sql::previous_of(static_cast<std::int64_t>(r.id % 8) - 1));
        });
        whole.insert(whole.end(), open.begin(), open.end());
    }
    run_whole(c, whole);
}

}  // namespace

sql::Reply Table::read(const std::vector<std::string>& keys, boot_clock::time_point deadline,
                       sql::TableRows& rows) {
    rows.clear();
    for (const auto& key : keys)
        rows[key];
    Said said = connection_.run(Packet(Sql::read, {Value(keys)}), deadline, true);
    if (said.failed) return said;
    try {
        const Result& found = said.results[0];
        for (std::size_t i = 0; i < found.rows.size(); ++i) {
            sql::TableRow& row = rows[found.text(i, 0)];
            if (row.present) return no_key();
            row.present = true;
            row.columns.owner = found.text(i, 1);
            row.columns.token = found.number(i, 2);
            row.columns.expires = found.number(i, 3);
            row.columns.acquired = found.number(i, 4);
            row.columns.mark = static_cast<int>(found.number(i, 5));
            row.columns.previous = static_cast<int>(found.number(i, 6));
            row.columns.revoked = found.number(i, 7) != 0;
            row.columns.text = found.text(i, 8);
            row.version = found.text(i, 9);
            row.gone = found.text(i, 10);
            row.now = found.number(i, 11);
            server.heard_clock(row.now);
        }
    } catch (const std::logic_error& e) {  // a number that is none
        connection_.close();
        said.failed = {make(Error::strange_answer), e.what()};
    }
    return said;
}

sql::Reply Table::ensure(const std::vector<std::string>& keys, boot_clock::time_point deadline) {
    sql::Reply reply;
    run_rows(
        connection_, keys, deadline, true,
        [](Packet& p, const std::string& key) { p.add(Sql::ensure, {key}); },
        [&](const std::string&, const Said& said, const Result*) {
            if (said.failed) reply = said;
        });
    return reply;
}

sql::Reply Table::write(const std::vector<sql::Change>& changes, sql::Written& done, milliseconds) {
    sql::Reply reply;
    auto last = boot_clock::time_point::min();
    std::vector<const sql::Change*> all;
    for (const sql::Change& one : changes) {
        last = std::max(last, one.deadline);
        all.push_back(&one);
    }
    const auto row = [&](Packet& p, const sql::Change* one) {
        const sql::Columns& to = one->columns;
        // What is kept out keeps a free row from the sweep.
        const bool kept = to.owner.empty() && !one->row->gone.empty();
        const auto expires = kept ? std::max(to.expires, one->row->now) : to.expires;
        p.add(Sql::write,
              {to.owner, to.token, expires, to.acquired, std::int64_t{to.mark},
               std::int64_t{to.previous}, std::int64_t{to.revoked}, to.text, one->row->gone,
               one->key, std::stoll(one->row->version), server.server_us(one->deadline)});
    };
    run_rows(connection_, all, last, false, row,
             [&](const sql::Change* one, const Said& said, const Result* result) {
                 const bool failed = result == nullptr;
                 const bool doubled = !failed && result->affected > 1;
                 if ((failed || doubled) && (!reply.failed || reply.nothing_done))
                     reply = doubled ? no_key() : said;
                 if (!failed && result->affected == 1)
                     done[one->key] = false;  // nobody stands in a line
             });
    return reply;
}

bool Table::has_left(const Step& s, const sql::TableRow& row) const {
    bool found = false;
    each_ghost(row.gone, [&](const std::string& owner, std::int64_t until) {
        found = found || (owner == s.owner && until > row.now);
    });
    return found;
}

bool Table::lay_ghost(const Step& s, sql::TableRow& row) {
    if (s.ghost == 0) return false;
    const auto now = std::max(row.now, server.server_us(boot_clock::now()));
    std::string kept;
    each_ghost(row.gone, [&](const std::string& owner, std::int64_t until) {
        if (until > now && owner != s.owner) sql::TextLine::write(kept, "gone", owner, until);
    });
    if (s.ghost > now) sql::TextLine::write(kept, "gone", s.owner, s.ghost);
    row.gone = std::move(kept);
    // Written in any case: that waits for a grant of this owner which is just being committed.
    return true;
}

void run_steps(Connection& c, std::span<Step* const> all) {
    const auto of_kind = [&](Kind kind) {
        Steps steps;
        const auto now = boot_clock::now();
        for (Step* s : all) {
            if (s->kind != kind || s->done) continue;
            if (now < s->deadline) {
                steps.push_back(s);
                continue;
            }
            Said late;
            late.failed = make(Error::no_answer);
            sql::refuse(c.shared(), *s, late);
        }
        return steps;
    };
    const auto split = [](const Steps& steps, bool fast) {
        Steps out;
        std::copy_if(steps.begin(), steps.end(), std::back_inserter(out),
                     [=](const Step* s) { return s->fast() == fast; });
        return out;
    };
    // First, since time runs for them only.
    const Steps renewals = of_kind(Kind::renew);
    renew(c, split(renewals, true));
    run_whole(c, split(renewals, false));
    const Steps releases = of_kind(Kind::release);
    release(c, split(releases, true));
    run_whole(c, split(releases, false));
    sql::keep_out(c.shared(), releases, [&](const Steps& leaving) { withdraw(c, leaving); });
    withdraw(c, of_kind(Kind::withdraw));
    attempt(c, of_kind(Kind::attempt));
}

void sweep(Connection& c, boot_clock::time_point deadline, std::string& cursor) noexcept {
    try {
        const std::string from = std::exchange(cursor, {});
        const Said window = c.run(Packet(Sql::sweep_window, {from}), deadline);
        if (window.failed || window.results[0].rows.empty()) return;
        const std::string last = window.results[0].text(0, 0);
        if (last.empty()) return;
        const Said swept = c.run(Packet(Sql::sweep, {from, last}), deadline);
        if (!swept.failed && window.results[0].number(0, 1) >= 1000) cursor = last;
    } catch (const std::exception&) {
        cursor.clear();
    }
}

}  // namespace holdfast::mysql
