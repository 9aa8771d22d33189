#include "questions.hpp"

#include "exchange.hpp"
#include "holdfast/spi/owner.hpp"

namespace holdfast::postgresql {
namespace {

Holder holder_of(const Row& row) {
    const spi::Owner o = spi::parse_owner(row.owner);
    Holder h;
    h.owner = row.owner;
    h.host = o.host;
    h.pid = o.pid;
    h.note = o.note;
    h.foreign = !o.ours;
    h.token = {static_cast<std::uint64_t>(row.token)};
    h.ttl_left = milliseconds(row.left_us / 1000);
    h.held_for = milliseconds(row.held_us < 0 ? -1 : row.held_us / 1000);
    h.revoked = row.revoked;
    return h;
}

/// The row of one name; an absent one is free.
result<Row> row_of(Connection& c, const std::string& key, boot_clock::time_point deadline,
                   std::string& detail) {
    std::vector<std::pair<std::string, Row>> rows;
    Said said = look(c, {key}, deadline, rows);
    detail = std::move(said.detail);
    if (said.error) return said.error;
    return rows.empty() ? Row() : std::move(rows.front().second);
}

}  // namespace

result<Inspection> inspect(Connection& c, const std::string& name, boot_clock::time_point deadline,
                           std::string& detail) {
    const auto row = row_of(c, c.shared().options.prefix + name, deadline, detail);
    if (!row) return row.error();
    Inspection found;
    found.name = name;
    found.last_token = {static_cast<std::uint64_t>(row->token)};
    if (row->live()) found.holders.push_back(holder_of(*row));
    return found;
}

result<std::vector<std::string>> list(Connection& c, const std::string& prefix, std::size_t limit,
                                      boot_clock::time_point deadline, std::string& detail) {
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

result<Broken> break_lock(Connection& c, const std::string& name,
                          std::optional<FencingToken> if_token, bool now,
                          boot_clock::time_point deadline, std::string& detail) {
    const std::string key = c.shared().options.prefix + name;
    for (;;) {
        const auto row = row_of(c, key, deadline, detail);
        if (!row) return row.error();
        if (!row->plain) return make(Error::foreign_row);
        const FencingToken token{static_cast<std::uint64_t>(row->token)};
        if (!row->live()) {
            detail = "nobody holds it";
            return make_error_code(errc::not_held);
        }
        if (if_token && *if_token != token) {
            detail = "the holder has another token: " + std::to_string(token.value);
            return make_error_code(errc::not_held);
        }
        Said said =
            c.run(now ? Sql::revoke_now : Sql::revoke, {key, std::to_string(row->token)}, deadline);
        detail = std::move(said.detail);
        if (said.error) return said.error;
        if (said.rows.empty()) continue;  // it changed hands between the two
        if (now && column(said.rows[0], 1) == "t") tell(c, {key}, deadline, false);
        Broken broken;
        broken.holder = holder_of(*row);
        broken.holder.revoked = true;
        // A renewal may have come in between.
        const auto after = now ? result<Row>(Row()) : row_of(c, key, deadline, detail);
        if (!after) return after.error();
        broken.free_in = now ? milliseconds(0) : milliseconds(after->left_us / 1000 + 1);
        return broken;
    }
}

result<Capabilities> probe(Connection& c, boot_clock::time_point deadline, std::string& detail) {
    // A fresh look: settings and poolers change.
    c.close();
    if (const auto why = c.open(deadline, detail)) return why;
    Capabilities found = promises();
    if (c.pooled()) found.set(Capability::notified, false);
    if (!c.fsync()) {
        found.set(Capability::survives_server_crash, false);
        found.safety = SafetyClass::d;
    }
    // Only a write proves the right to write.
    std::vector<std::pair<std::string, Row>> rows;
    Said said = c.run(Sql::stand, {"{}", "{}", c.shared().me, "{}"}, deadline);
    if (!said.error) return found;
    detail = std::move(said.detail);
    return said.error;
}

}  // namespace holdfast::postgresql
