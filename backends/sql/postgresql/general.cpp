// The whole row: how it is read and written, and the two statements that do without.
#include "exchange.hpp"

namespace holdfast::postgresql {
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

void tell_all(Connection& c, const std::vector<std::string>& keys,
              boot_clock::time_point deadline) {
    (void)c.run(Sql::tell_all, {array_of(keys), c.shared().me}, deadline);
}

sql::Reply Table::read(const std::vector<std::string>& keys, boot_clock::time_point deadline,
                       TableRows& rows) {
    return postgresql::read(connection_, keys, deadline, rows);
}

sql::Reply Table::ensure(const std::vector<std::string>& keys, boot_clock::time_point deadline) {
    return connection_.run(Sql::ensure, {array_of(keys)}, deadline);
}

sql::Reply Table::write(const std::vector<Change>& changes, sql::Written& done,
                        milliseconds patience) {
    std::array<ArrayText, 11> p;
    ArrayText tells;
    auto last = boot_clock::time_point::min();
    const bool synced =
        std::any_of(changes.begin(), changes.end(), [](const Change& one) { return one.synced; });
    for (const Change& one : changes) {
        const sql::Columns& to = one.columns;
        last = std::max(last, one.deadline);
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
        p[10].add(connection_.shared().server_us(one.deadline));
        // Messages of all databases wait for one lock until a commit is synced.
        tells.add(std::string_view(one.tells && !synced ? "t" : "f"));
    }
    std::vector<std::string> parameters;
    for (ArrayText& array : p)
        parameters.push_back(array.take());
    parameters.emplace_back(synced ? "on" : "off");
    parameters.push_back(std::to_string(patience.count()) + "ms");
    parameters.push_back(tells.take());
    parameters.push_back(connection_.shared().me);
    Said said =
        connection_.run(changes.size() > 1 ? Sql::write_many : Sql::write, parameters, last);
    for (const auto& r : said.rows)
        done[std::string(column(r, 0))] = column(r, 1) == "t" && r[2].is_null();
    return said;
}

/// Where nobody else holds the name, one statement grants it to a reader or to permits, or releases
/// it. True when that is its outcome.
bool Table::alone(Step& s) {
    Connection& c = connection_;
    Shared& shared = c.shared();
    const spi::Units& u = s.units;
    const bool timed = s.lock_delay > milliseconds::zero() || s.min_hold > milliseconds::zero();
    const bool first = is_attempt(&s) && s.expect_free && s.ghost == 0 && !s.marked;
    const bool fits = first || s.kind == Step::Kind::release;
    if (u.exclusive() || timed || !fits || !shared.found_free) return false;
    const std::string take = text(u.take), of = text(u.of),
                      beside = u.mode == Mode::shared ? "t" : "f";
    const Said said =
        first ? c.run(Sql::grant_free,
                      {s.key, s.owner, text(spi::to_us(s.ttl)), text(shared.server_us(s.deadline)),
                       take, of, beside},
                      s.deadline)
              : c.run(Sql::release_alone,
                      {s.key, s.owner, text(s.token), take, of, beside, shared.me}, s.deadline);
    if (!went_well(c, said, {&s})) return true;
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
    // More than one may come in beside it. A grant is synced, so it notifies nobody itself.
    if (first && column(row, 2) == "t") tell_all({s.key}, s.deadline);
    return true;
}

void Table::tell_all(const std::vector<std::string>& keys, boot_clock::time_point deadline) {
    postgresql::tell_all(connection_, keys, deadline);
}

void run_general(Connection& c, Steps steps) {
    Table table(c);
    sql::run_rounds(table, std::move(steps));
}

}  // namespace holdfast::postgresql
