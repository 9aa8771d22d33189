#include "statements.hpp"

#include <string_view>

namespace holdfast::postgresql {
namespace {

// TABLE stands for the table, NOW for the server's clock in us; SYNC and ASYNC decide how the
// commit is made durable, by a subquery, which runs once whatever the number of rows.

constexpr std::string_view create_text = R"(CREATE TABLE IF NOT EXISTS TABLE (
  name     text COLLATE "C" NOT NULL,
  slot     integer NOT NULL DEFAULT 0,
  owner    text,
  token    bigint NOT NULL DEFAULT 0,
  expires  timestamptz NOT NULL DEFAULT 'epoch',
  acquired timestamptz NOT NULL DEFAULT clock_timestamp(),
  mark     smallint NOT NULL DEFAULT 0,
  previous smallint NOT NULL DEFAULT 0,
  revoked  boolean NOT NULL DEFAULT false,
  line     jsonb,
  gone     jsonb,
  meta     text,
  PRIMARY KEY (name, slot)
) WITH (fillfactor = 50);
COMMENT ON TABLE TABLE IS 'COMMENT';
)";

constexpr std::string_view hello_text =
    "SELECT pg_backend_pid(), pg_is_in_recovery(), current_setting('transaction_read_only'), "
    "current_setting('fsync'), NOW, obj_description(to_regclass('TABLE'), 'pg_class'), "
    "to_regclass('TABLE') IS NOT NULL, "
    // Only where the session is ours alone.
    "CASE WHEN pg_backend_pid() = $1::integer THEN "
    "set_config('default_transaction_isolation', 'read committed', false) || "
    "set_config('enable_seqscan', 'off', false) || "
    "set_config('plan_cache_mode', 'force_generic_plan', false) || "
    "set_config('jit', 'off', false) END";

/// The same for one grant and for many: what a grant writes, `f` being the row as it was locked.
#define HOLDFAST_GRANT(OWNER, TTL, CLIENT, NEXT)                                               \
    "UPDATE TABLE l SET owner = " OWNER ", token = CASE WHEN l.owner = " OWNER                 \
    " AND l.expires > clock_timestamp() THEN l.token ELSE greatest(l.token + 1, NOW) END, "    \
    "previous = CASE WHEN l.owner IS NULL THEN l.mark WHEN l.owner = " OWNER                   \
    " THEN l.previous ELSE 3 END, "                                                            \
    "acquired = CASE WHEN l.owner = " OWNER                                                    \
    " THEN l.acquired ELSE clock_timestamp() END, "                                            \
    "expires = clock_timestamp() + " TTL                                                       \
    " * interval '1 millisecond', mark = 0, revoked = false, "                                 \
    "line = CASE WHEN " NEXT " < 0 THEN l.line WHEN " NEXT " = 0 THEN nullif(l.line - " CLIENT \
    ", '{}') ELSE coalesce(l.line, '{}') || jsonb_build_object(" CLIENT                        \
    ", jsonb_build_array(" NEXT                                                                \
    ", NOW + PLACE)) END "                                                                     \
    "FROM f WHERE l.name = f.name AND l.slot = f.slot "

// NOLINTBEGIN(bugprone-suspicious-missing-comma): each text is several literals long.
constexpr std::string_view texts[] = {
    // grant
    "WITH f AS MATERIALIZED (SELECT name, slot FROM TABLE WHERE name = $1 AND slot = 0 "
    "AND meta IS NULL "
    "AND (owner IS NULL OR expires <= clock_timestamp() OR owner = $2 AND NOT revoked) "
    "AND (gone IS NULL OR NOT gone ? $2) "
    "AND clock_timestamp() < 'epoch'::timestamptz + $4::float8 * interval '1 microsecond' "
    "AND SYNC FOR UPDATE SKIP LOCKED) "  //
    HOLDFAST_GRANT("$2", "$3::float8", "$5::text", "$6::bigint") "RETURNING l.token, l.previous",
    // release
    "UPDATE TABLE SET owner = NULL, mark = $4::smallint WHERE name = $1 AND slot = 0 "
    "AND owner = $2 AND token = $3::bigint AND expires > clock_timestamp() AND ASYNC "
    "RETURNING name, line IS NOT NULL",
    // grant_many
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.owner AS who, r.ttl, r.next FROM "
    "unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $6::bigint[]) "
    "AS r(name, owner, ttl, deadline, next) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 WHERE l.meta IS NULL "
    "AND (l.owner IS NULL OR l.expires <= clock_timestamp() OR l.owner = r.owner AND NOT "
    "l.revoked) "
    "AND (l.gone IS NULL OR NOT l.gone ? r.owner) "
    "AND clock_timestamp() < 'epoch'::timestamptz + r.deadline * interval '1 microsecond' "
    "AND SYNC ORDER BY l.name FOR UPDATE OF l SKIP LOCKED) "  //
    HOLDFAST_GRANT("f.who", "f.ttl", "$5::text", "f.next") "RETURNING l.name, l.token, l.previous",
    // release_many
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.mark FROM "
    "unnest($1::text[], $2::text[], $3::bigint[], $4::smallint[]) AS r(name, owner, token, mark) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 WHERE l.owner = r.owner AND l.token = r.token "
    "AND l.expires > clock_timestamp() AND ASYNC ORDER BY l.name FOR UPDATE OF l) "
    "UPDATE TABLE l SET owner = NULL, mark = f.mark FROM f "
    "WHERE l.name = f.name AND l.slot = f.slot RETURNING l.name, l.line IS NOT NULL",
    // look
    "SELECT name, owner, token, (extract(epoch FROM "
    "least(expires, clock_timestamp() + interval '10 years') - clock_timestamp()) * 1000000)"
    "::bigint, (extract(epoch FROM clock_timestamp() - acquired) * 1000000)::bigint, "
    "mark, revoked, meta IS NULL, (line->$2::text->>1)::bigint > NOW + PLACE / 2, NOW "
    "FROM TABLE WHERE name = ANY ($1::text[]) AND slot = 0",
    // ensure
    "INSERT INTO TABLE (name) SELECT r.name FROM unnest($1::text[]) AS r(name) "
    "WHERE ASYNC ORDER BY r.name ON CONFLICT DO NOTHING",
    // stand
    // It waits for a grant or a release that is being committed, but not for long.
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.since FROM "
    "unnest($1::text[], $2::bigint[], $4::boolean[]) AS r(name, since, anyway) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 "
    "WHERE (l.owner IS NOT NULL AND l.expires > clock_timestamp() OR r.anyway) "
    "AND ASYNC AND set_config('lock_timeout', '20ms', true) <> '' "
    "ORDER BY l.name FOR UPDATE OF l) "
    "UPDATE TABLE l SET line = coalesce((SELECT jsonb_object_agg(key, value) FROM "
    "jsonb_each(l.line) WHERE (value->>1)::bigint > NOW), '{}') || "
    "jsonb_build_object($3::text, jsonb_build_array(f.since, NOW + PLACE)) FROM f "
    "WHERE l.name = f.name AND l.slot = f.slot RETURNING l.name",
    // tell
    "WITH f AS MATERIALIZED (SELECT name, slot, "
    "CASE WHEN $3::boolean THEN line - $2::text ELSE line END AS line, "
    "owner IS NULL OR expires <= clock_timestamp() AS free FROM TABLE "
    "WHERE name = ANY ($1::text[]) AND slot = 0 AND line IS NOT NULL AND ASYNC "
    "ORDER BY name FOR UPDATE SKIP LOCKED), "
    "h AS MATERIALIZED (SELECT f.*, w.key AS first FROM f LEFT JOIN LATERAL "
    "(SELECT key FROM jsonb_each(f.line) WHERE f.free AND (value->>1)::bigint > NOW "
    "ORDER BY (value->>0)::bigint, key LIMIT 1) w ON true) "
    "UPDATE TABLE l SET line = CASE WHEN h.first IS NULL AND h.free THEN NULL "
    "ELSE nullif(h.line - coalesce(h.first, ''), '{}') END FROM h "
    "WHERE l.name = h.name AND l.slot = h.slot RETURNING l.name, "
    "coalesce(h.first <> $2::text, false), "
    "CASE WHEN h.first <> $2::text THEN pg_notify('holdfast_' || h.first, l.name) END",
    // renew
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.ttl FROM "
    "unnest($1::text[], $2::text[], $3::bigint[], $4::float8[]) AS r(name, owner, token, ttl) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 WHERE l.owner = r.owner AND l.token = r.token "
    "AND NOT l.revoked AND l.expires > clock_timestamp() AND SYNC "
    "ORDER BY l.name FOR UPDATE OF l SKIP LOCKED) "
    "UPDATE TABLE l SET expires = clock_timestamp() + f.ttl * interval '1 millisecond' FROM f "
    "WHERE l.name = f.name AND l.slot = f.slot RETURNING l.name",
    // withdraw
    // The row is locked first and judged then: a grant of ours may be in the middle of its commit.
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, l.owner, r.owners::jsonb AS owners, r.until "
    "FROM "
    "unnest($1::text[], $2::text[], $3::bigint[]) AS r(name, owners, until) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 WHERE l.meta IS NULL "
    "AND ASYNC ORDER BY l.name FOR UPDATE OF l) "
    "UPDATE TABLE l SET mark = CASE WHEN f.owners ? l.owner THEN l.previous ELSE l.mark END, "
    "owner = CASE WHEN f.owners ? l.owner THEN NULL ELSE l.owner END, "
    "gone = (SELECT jsonb_object_agg(key, value) FROM "
    "jsonb_each(coalesce(l.gone, '{}'::jsonb) || f.owners) WHERE value::bigint > NOW) FROM f "
    "WHERE l.name = f.name AND l.slot = f.slot AND (f.owners ? f.owner OR f.until > NOW) "
    "RETURNING l.name, l.owner IS NULL AND l.line IS NOT NULL",
    // revoke
    "UPDATE TABLE SET revoked = true WHERE name = $1 AND slot = 0 AND token = $2::bigint "
    "AND owner IS NOT NULL AND meta IS NULL AND expires > clock_timestamp() AND SYNC RETURNING 1",
    // revoke_now
    "UPDATE TABLE l SET revoked = true, owner = NULL, mark = 3 WHERE name = $1 AND slot = 0 "
    "AND token = $2::bigint AND owner IS NOT NULL AND meta IS NULL "
    "AND expires > clock_timestamp() AND SYNC RETURNING l.name, l.line IS NOT NULL",
    // list
    "SELECT name FROM TABLE WHERE name >= $1 AND starts_with(name, $1) AND slot = 0 "
    "AND owner IS NOT NULL AND expires > clock_timestamp() ORDER BY name LIMIT $2::bigint",
    // sweep
    "WITH w AS MATERIALIZED (SELECT name, slot FROM TABLE WHERE name > $1 "
    "ORDER BY name, slot LIMIT 1000), "
    "f AS MATERIALIZED (SELECT l.name, l.slot FROM w JOIN TABLE l USING (name, slot) "
    "WHERE l.owner IS NULL AND l.meta IS NULL AND l.mark < 2 AND l.token < NOW - 86400000000 "
    "AND l.acquired < clock_timestamp() - interval '1 day' "
    "AND ASYNC ORDER BY l.name FOR UPDATE OF l SKIP LOCKED), "
    "d AS (DELETE FROM TABLE l USING f WHERE l.name = f.name AND l.slot = f.slot RETURNING 1) "
    "SELECT max(name), count(*), (SELECT count(*) FROM d) FROM w",
};
// NOLINTEND(bugprone-suspicious-missing-comma)
#undef HOLDFAST_GRANT

std::string quoted(std::string_view identifier) {
    std::string out = "\"";
    for (const char c : identifier) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

void replace(std::string& text, std::string_view word, std::string_view by) {
    for (auto at = text.find(word); at != text.npos; at = text.find(word, at + by.size()))
        text.replace(at, word.size(), by);
}

std::string literal(std::string text) {
    replace(text, "'", "''");
    return text;
}

std::string complete(std::string_view pattern, const std::string& table) {
    std::string text(pattern);
    replace(text, "to_regclass('TABLE')", "to_regclass('" + literal(table) + "')");
    replace(text, "TABLE TABLE", "TABLE @");
    replace(text, "EXISTS TABLE", "EXISTS @");
    for (const char* before : {"FROM TABLE", "JOIN TABLE", "UPDATE TABLE", "INTO TABLE"})
        replace(text, before, std::string(before, std::string_view(before).find(' ')) + " @");
    replace(text, "@", table);
    replace(text, "PLACE", std::to_string(std::chrono::microseconds(place_lasts).count()));
    replace(text, "ASYNC", "(SELECT set_config('synchronous_commit', 'off', true)) = 'off'");
    replace(text, "SYNC", "(SELECT set_config('synchronous_commit', 'on', true)) = 'on'");
    replace(text, "NOW", "(date_part('epoch', clock_timestamp()) * 1000000)::bigint");
    return text;
}

std::string name_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    std::string name = "holdfast_";
    for (int i = 0; i < 16; ++i, hash >>= 4U)
        name += "0123456789abcdef"[hash & 15U];
    return name;
}

}  // namespace

Statements::Statements(const std::string& schema) : create_(), hello_() {
    const std::string table = (schema.empty() ? "" : quoted(schema) + ".") + "holdfast_lease";
    static_assert(std::size(texts) == static_cast<std::size_t>(Sql::count_));
    for (std::size_t i = 0; i < texts_.size(); ++i) {
        texts_[i] = complete(texts[i], table);
        names_[i] = name_of(texts_[i]);
    }
    create_ = complete(create_text, table);
    replace(create_, "'COMMENT'", "'" + table_comment() + "'");
    hello_ = complete(hello_text, table);
}

}  // namespace holdfast::postgresql
