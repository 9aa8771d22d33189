#include "questions.hpp"

#include <algorithm>

#include "clocks.hpp"
#include "errors.hpp"
#include "holdfast/spi/owner.hpp"
#include "steps.hpp"

namespace holdfast::sqlite {
namespace {

constexpr int mark_crashed = 3;

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

error_code step_error(Connection& c, int rc, std::string& detail) {
    const error_code ec = c.fail(rc, detail);
    c.rollback();
    return ec;
}

}  // namespace

result<Inspection> inspect(Connection& c, const std::string& name, boot_clock::time_point deadline,
                           std::string& detail) {
    if (const auto ec = c.open(deadline, detail)) return ec;
    Row row;
    const std::string key = c.place().name_prefix + name;
    if (const int rc = look(c, key, row); rc != SQLITE_OK) return step_error(c, rc, detail);
    Inspection found;
    found.name = name;
    found.last_token = {static_cast<std::uint64_t>(row.token)};
    if (row.state == Row::State::held) found.holders.push_back(holder_of(row));
    return found;
}

result<std::vector<std::string>> list(Connection& c, const std::string& prefix, std::size_t limit,
                                      boot_clock::time_point deadline, std::string& detail) {
    if (const auto ec = c.open(deadline, detail)) return ec;
    const std::string& space = c.place().name_prefix;
    const std::string key = space + prefix;
    std::vector<std::string> names;
    Query q(c.statement(Sql::list));
    q.bind(1, std::string_view(key));
    int rc = SQLITE_DONE;
    // Names that share a prefix stand together, and the prefix itself comes first.
    while (names.size() < limit && (rc = q.step()) == SQLITE_ROW) {
        const std::string_view name = q.text(0);
        if (name.substr(0, key.size()) != key) break;
        if (q.text(1) != boot_id() || q.number(2) <= boot_us()) continue;
        std::string shown(name.substr(space.size()));
        if (names.empty() || names.back() != shown) names.push_back(std::move(shown));
        if (boot_clock::now() >= deadline) {
            rc = SQLITE_BUSY;
            break;
        }
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) return step_error(c, rc, detail);
    std::sort(names.begin(), names.end());
    return names;
}

result<Broken> break_lock(Connection& c, const std::string& name,
                          std::optional<FencingToken> if_token, bool now,
                          boot_clock::time_point deadline, std::string& detail) {
    if (const auto ec = c.open(deadline, detail)) return ec;
    int rc = c.begin(deadline);
    if (rc != SQLITE_OK) return step_error(c, rc, detail);
    Row row;
    const std::string key = c.place().name_prefix + name;
    rc = look(c, key, row);
    if (rc != SQLITE_OK) return step_error(c, rc, detail);
    const FencingToken token{static_cast<std::uint64_t>(row.token)};
    error_code refused;
    if (row.state != Row::State::held) {
        detail = "nobody holds it";
        refused = make_error_code(errc::not_held);
    } else if (if_token && *if_token != token) {
        detail = "the holder has another token: " + std::to_string(token.value);
        refused = make_error_code(errc::not_held);
    } else if (!row.plain) {
        refused = make_error(Finding::foreign_row);
    }
    if (refused) {
        c.rollback();
        return refused;
    }
    {
        Query q(c.statement(Sql::revoke));
        rc = q.bind(1, std::string_view(key)).step();
    }
    if (rc == SQLITE_DONE && now) {
        Query q(c.statement(Sql::release));
        rc = q.bind(1, std::string_view(key)).bind(2, mark_crashed).step();
    }
    if (rc != SQLITE_DONE) return step_error(c, rc, detail);
    rc = c.commit();
    if (rc != SQLITE_OK) return step_error(c, rc, detail);
    Broken broken;
    broken.holder = holder_of(row);
    broken.holder.revoked = true;
    broken.free_in = now ? milliseconds(0) : milliseconds(row.left_us / 1000 + 1);
    return broken;
}

error_code probe(Connection& c, Capabilities& promised, boot_clock::time_point deadline,
                 std::string& detail) {
    if (const auto ec = c.open(deadline, detail)) return ec;
    // Only the write lock proves that the file can be written.
    const int rc = c.begin(deadline);
    if (rc != SQLITE_OK) return step_error(c, rc, detail);
    c.rollback();
    if (in_memory(c.place().path)) promised.set(Capability::survives_server_crash, false);
    return {};
}

}  // namespace holdfast::sqlite
