// Every statement of this backend. The README prints those of an acquire and a release, and a test
// compares them with what SQLite really ran.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::sqlite {

/// The layout of the tables below. A file with a greater number is refused.
inline constexpr int layout_format = 2;

enum class Sql : std::uint8_t {
    begin,
    commit,
    rollback,
    look,
    count,
    grant,
    renew,
    release,
    write,
    data_version,
    list,
    record,
    recorded,
    sweep_window,
    sweep_row,
    sweep_mark,
    count_
};

/// mark: the next holder's previous_holder: 0 none, 1 released, 2 abandoned, 3 crashed.
/// previous: that of the present holder; a withdrawn grant passes it on.
/// ttl: what `expires` was counted from when written. A row is held only for that long, so a row
/// from before a restart of the machine closes the name no longer. The boot id is for people.
/// meta: empty if there is only an exclusive holder; else see common/name_text.hpp. Text with
/// another beginning is from another program, and is not touched.
inline constexpr const char* create_schema =
    "CREATE TABLE holdfast_format("
    " id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL, last INTEGER NOT NULL,"
    " swept TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE holdfast_lease("
    " name TEXT NOT NULL, slot INTEGER NOT NULL DEFAULT 0, owner TEXT, token INTEGER NOT NULL,"
    " expires INTEGER NOT NULL, boot_id TEXT NOT NULL, acquired INTEGER NOT NULL,"
    " mark INTEGER NOT NULL DEFAULT 0, previous INTEGER NOT NULL DEFAULT 0,"
    " revoked INTEGER NOT NULL DEFAULT 0, meta TEXT, ttl INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY (name, slot)) WITHOUT ROWID;"
    "INSERT INTO holdfast_format(id, format, last) VALUES (1, 2, 0);";

/// From layout 1, which had no ttl. Every renewal since a grant has moved `expires`, so the time
/// between the two columns is at least its ttl; no ttl is longer than a day.
inline constexpr const char* from_layout_1 =
    "ALTER TABLE holdfast_lease ADD COLUMN ttl INTEGER NOT NULL DEFAULT 0;"
    "UPDATE holdfast_lease SET ttl = min(expires - acquired, 86400000000) WHERE owner IS NOT NULL;"
    "UPDATE holdfast_format SET format = 2;";
/// Whether a lease of layout 1 may be alive: its holder cannot renew it in layout 2.
inline constexpr const char* held_in_layout_1 =
    "SELECT count(*) FROM holdfast_lease WHERE owner IS NOT NULL AND expires > ?1 AND "
    "acquired <= ?1 AND boot_id = ?2";

inline constexpr std::array<std::string_view, static_cast<std::size_t>(Sql::count_)> statements{
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "SELECT f.format, f.last, l.owner, l.token, l.expires, l.ttl, l.acquired, l.mark, "
    "l.previous, l.revoked, l.meta FROM holdfast_format f "
    "LEFT JOIN holdfast_lease l ON l.name = ?1 AND l.slot = 0 WHERE f.id = 1",
    "UPDATE holdfast_format SET last = ?1 WHERE id = 1",
    "INSERT INTO holdfast_lease(name, owner, token, expires, boot_id, acquired, previous, "
    "ttl) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (name, slot) DO UPDATE SET "
    "owner = excluded.owner, token = excluded.token, expires = excluded.expires, "
    "boot_id = excluded.boot_id, acquired = excluded.acquired, previous = excluded.previous, "
    "mark = 0, revoked = 0, ttl = excluded.ttl",
    "UPDATE holdfast_lease SET expires = ?2, ttl = ?3 WHERE name = ?1 AND slot = 0",
    "UPDATE holdfast_lease SET owner = NULL, expires = 0, mark = ?2 WHERE name = ?1 AND slot = 0",
    "INSERT INTO holdfast_lease(name, owner, token, expires, boot_id, acquired, previous, "
    "ttl, mark, revoked, meta) VALUES (?1, nullif(?2, ''), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
    "nullif(?11, '')) ON CONFLICT (name, slot) DO UPDATE SET "
    "owner = excluded.owner, token = excluded.token, expires = excluded.expires, "
    "boot_id = excluded.boot_id, acquired = excluded.acquired, previous = excluded.previous, "
    "ttl = excluded.ttl, mark = excluded.mark, revoked = excluded.revoked, meta = excluded.meta",
    "PRAGMA data_version",
    "SELECT name, expires, ttl FROM holdfast_lease WHERE name >= ?1 AND owner IS NOT NULL "
    "ORDER BY name, slot",
    "INSERT INTO holdfast_lease(name, slot, token, expires, boot_id, acquired, meta) VALUES "
    "(?1, 1, ?2, 0, ?3, ?4, ?5) ON CONFLICT (name, slot) DO UPDATE SET token = excluded.token, "
    "boot_id = excluded.boot_id, acquired = excluded.acquired, meta = excluded.meta",
    "SELECT meta FROM holdfast_lease WHERE name = ?1 AND slot = 1",
    "SELECT l.name, l.slot, l.mark < 2 AND l.token < ?1 AND (l.owner IS NULL OR l.owner GLOB "
    "'hf:*' "
    "AND NOT (l.expires > ?3 AND l.expires - ?3 <= l.ttl + 1000)) "
    "AND (l.meta IS NULL OR l.meta GLOB 'hf 1*') FROM holdfast_format f JOIN holdfast_lease l ON "
    "l.name > f.swept WHERE f.id = 1 "
    "ORDER BY l.name, l.slot LIMIT ?2",
    "DELETE FROM holdfast_lease WHERE name = ?1 AND slot = ?2",
    "UPDATE holdfast_format SET swept = ?1 WHERE id = 1",
};

}  // namespace holdfast::sqlite
