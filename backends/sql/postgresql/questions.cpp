#include "questions.hpp"

#include "exchange.hpp"
#include "line.hpp"

namespace holdfast::postgresql {
namespace {

/// The row of one name; an absent one is free.
result<Row> row_of(Connection& c, const std::string& key, boot_clock::time_point deadline,
                   std::string& detail) {
    Rows rows;
    Said said = look(c, {key}, deadline, rows);
    detail = std::move(said.detail);
    if (said.error) return said.error;
    return std::move(rows[key]);
}

}  // namespace

result<Inspection> Questions::inspect(Connection& c, const std::string& name,
                                      boot_clock::time_point deadline, std::string& detail) {
    const auto row = row_of(c, c.shared().options.prefix + name, deadline, detail);
    if (!row) return row.error();
    return inspection_of(name, *row);
}

result<std::vector<std::string>> Questions::list(Connection& c, const std::string& prefix,
                                                 std::size_t limit, boot_clock::time_point deadline,
                                                 std::string& detail) {
    const std::string& space = c.shared().options.prefix;
    constexpr std::size_t most = 1'000'000'000;
    Said said = c.run(Sql::list, {space + prefix, std::to_string(std::min(limit, most))}, deadline);
    detail = std::move(said.detail);
    if (said.error) return said.error;
    std::vector<std::string> names;
    for (const auto& row : said.rows)
        names.emplace_back(std::string_view(row[0].c_str()).substr(space.size()));
    return names;
}

result<std::vector<Broken>> Questions::break_lock(Connection& c, const std::string& name,
                                                  const BreakOptions& options,
                                                  boot_clock::time_point deadline,
                                                  std::string& detail) {
    const std::string key = c.shared().options.prefix + name;
    for (;;) {
        const auto row = row_of(c, key, deadline, detail);
        if (!row) return row.error();
        if (!row->plain) return make(Error::foreign_row);
        if (const auto why = why_not_broken(*row, options, detail)) return why;
        Said said = c.run(options.now ? Sql::revoke_now : Sql::revoke,
                          {key, std::to_string(row->token)}, deadline);
        detail = std::move(said.detail);
        if (said.error) return said.error;
        if (said.rows.empty()) continue;  // it changed hands between the two
        if (options.now && column(said.rows[0], 1) == "t") tell(c, {key}, deadline, false);
        if (options.now && c.shared().line) c.shared().line->freed_elsewhere(key);
        if (options.now) return broken_of(*row, options);
        // A renewal may have come in between.
        const auto after = row_of(c, key, deadline, detail);
        if (!after) return after.error();
        auto broken = broken_of(*row, options);
        broken.front().free_in = milliseconds(after->left_us / 1000 + 1);
        return broken;
    }
}

result<Capabilities> Questions::probe(Connection& c, boot_clock::time_point deadline,
                                      std::string& detail) {
    // A fresh look: settings and poolers change.
    c.close();
    if (const auto why = c.open(deadline, detail)) return why;
    Capabilities found = promises();
    if (c.pooled()) found.set(Capability::notified, false);
    if (c.forgetful()) found.set(Capability::survives_server_crash, false);
    Said followed = c.run_text(c.shared().statements.followed(), deadline);
    if (followed.error) {
        detail = std::move(followed.detail);
        return followed.error;
    }
    if (c.forgetful() || column(followed.rows[0], 0) == "t") found.safety = SafetyClass::d;
    // Only a write proves the right to write.
    Said said = c.run(Sql::stand, {"{}", "{}", c.shared().me, "{}"}, deadline);
    if (!said.error) return found;
    detail = std::move(said.detail);
    return said.error;
}

}  // namespace holdfast::postgresql
