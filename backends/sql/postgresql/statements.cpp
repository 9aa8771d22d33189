#include "statements.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace holdfast::postgresql {
namespace {

// TABLE stands for the table, CLOCK for the server's clock, NOW for the same in us; SYNC and ASYNC
// decide how the commit is made durable, by a subquery, which runs once whatever the number of
// rows. SOON is ASYNC, and gives up when somebody else has locked the row for longer: renewals wait
// behind it.
//
// Any schema of search_path may have functions and operators, and one that fits the arguments
// better than the server's own is taken, wherever it is. So functions are written with their
// schema, and operators stand between types that the server's own are made for: an integer constant
// beside a float8, an oid beside a regclass or an untyped parameter beside a jsonb is none of
// these. unnest of several arrays is syntax, and has no schema.

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

/// Columns: see Connection::introduce. It looks at one row of one catalogue, as planning more than
/// that takes ten times as long as connecting.
constexpr std::string_view hello_text =
    "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(), "
    "pg_catalog.current_setting('transaction_read_only'), NOW, "
    "pg_catalog.obj_description(c.oid, 'pg_class'), c.oid::text || ' ' || c.xmin::text, "
    // Nobody else may change it, and it has nothing that runs by itself: see audit_text.
    "pg_catalog.pg_get_userbyid(c.relowner) = current_user AND c.relkind = 'r' AND "
    "NOT c.relhastriggers AND NOT c.relhasrules AND c.relchecks = 0 AND NOT c.relrowsecurity AND "
    "c.relacl IS NULL, "
    // What makes a crash of the machine forget what was committed.
    "pg_catalog.concat_ws(', ', "
    "CASE WHEN pg_catalog.current_setting('fsync') <> 'on' THEN 'fsync is off' END, "
    "CASE WHEN pg_catalog.current_setting('full_page_writes') <> 'on' "
    "THEN 'full_page_writes is off' END, "
    "CASE WHEN c.relpersistence <> 'p' THEN 'the table is UNLOGGED' END), "
    "c.relnamespace::regnamespace::text, "
    // Only where the session is ours alone.
    "CASE WHEN pg_catalog.pg_backend_pid() = $1::integer THEN "
    "pg_catalog.set_config('default_transaction_isolation', 'read committed', false) || "
    "pg_catalog.set_config('enable_seqscan', 'off', false) || "
    "pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false) || "
    "pg_catalog.set_config('jit', 'off', false) || "
    "pg_catalog.set_config('tcp_keepalives_idle', $2::text, false) || "
    "pg_catalog.set_config('tcp_keepalives_interval', $3::text, false) || "
    "pg_catalog.set_config('tcp_keepalives_count', $4::text, false) END "
    "FROM (SELECT 1) AS always "
    "LEFT JOIN pg_class c ON c.oid = pg_catalog.to_regclass('TABLE')::oid";

/// What a table can do to the roles that write into it: its owner may give it code at any time, and
/// what code it has runs with the writer's permissions.
constexpr std::string_view audit_text =
    "WITH t AS MATERIALIZED (SELECT c.oid, c.relowner, c.relkind, c.relrowsecurity, c.relacl "
    "FROM pg_class c WHERE c.oid = pg_catalog.to_regclass('TABLE')::oid), "
    "me AS MATERIALIZED (SELECT oid, rolsuper FROM pg_roles WHERE rolname = current_user) SELECT "
    // Roles that may change the table and are not trusted with our permissions.
    "(SELECT o.rolname FROM t, me, pg_roles o WHERE o.oid = t.relowner AND o.oid <> me.oid "
    "AND NOT o.rolsuper AND (me.rolsuper OR o.oid <> (SELECT datdba FROM pg_database WHERE "
    "datname = pg_catalog.current_database()) AND NOT pg_catalog.pg_has_role(me.oid, o.oid, "
    "'MEMBER'))), "
    // What runs when somebody writes, beside what create_text has.
    "(SELECT pg_catalog.string_agg(what, ', ') FROM ("
    "SELECT 'trigger ' || tgname::text FROM pg_trigger, t WHERE tgrelid = t.oid AND NOT "
    "tgisinternal UNION ALL "
    "SELECT 'rule ' || rulename::text FROM pg_rewrite, t WHERE ev_class = t.oid UNION ALL "
    "SELECT 'constraint ' || conname::text FROM pg_constraint, t WHERE conrelid = t.oid AND "
    "contype = 'c' UNION ALL "
    "SELECT 'index ' || i.relname::text FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid, t "
    "WHERE x.indrelid = t.oid AND (x.indexprs IS NOT NULL OR x.indpred IS NOT NULL) UNION ALL "
    "SELECT 'default of column ' || a.attname::text FROM pg_attrdef d JOIN pg_attribute a ON "
    "a.attrelid = d.adrelid AND a.attnum = d.adnum, t WHERE d.adrelid = t.oid AND "
    "pg_catalog.pg_get_expr(d.adbin, d.adrelid) !~ "
    "'^(0|false|clock_timestamp\\(\\)|''[^'']*''::timestamp with time zone)$' UNION ALL "
    "SELECT 'type of column ' || a.attname::text FROM pg_attribute a, t WHERE a.attrelid = t.oid "
    "AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384::oid UNION ALL "
    "SELECT 'row security' FROM t WHERE relrowsecurity UNION ALL "
    "SELECT 'its kind: no plain table' FROM t WHERE relkind <> 'r') AS code(what)), "
    "(SELECT pg_catalog.string_agg(coalesce(r.rolname::text, 'PUBLIC'), ', ') FROM t, me, "
    "pg_catalog.aclexplode(t.relacl) g LEFT JOIN pg_roles r ON r.oid = g.grantee WHERE "
    "g.privilege_type = "
    "'TRIGGER' AND g.grantee <> t.relowner AND g.grantee <> me.oid AND r.rolsuper IS NOT TRUE)";

/// What examine.cpp judges, each column under the name of its fact. A role that may not know how
/// others follow sees how many there are.
constexpr std::string_view facts_text =
    "SELECT pg_catalog.version() AS version, NOW AS time_us, "
    "pg_catalog.current_setting('fsync') AS fsync, "
    "pg_catalog.current_setting('full_page_writes') AS full_page_writes, "
    "pg_catalog.current_setting('autovacuum') AS autovacuum, "
    "pg_catalog.current_setting('max_connections') AS max_connections, "
    "pg_catalog.current_setting('synchronous_standby_names') AS standby_names, "
    "(SELECT reset_val FROM pg_settings WHERE name = 'statement_timeout') AS statement_timeout, "
    "(SELECT reset_val FROM pg_settings WHERE name = 'idle_session_timeout') AS idle_timeout, "
    "(SELECT relpersistence::text FROM pg_class WHERE oid = pg_catalog.to_regclass('TABLE')::oid) "
    "AS persistence, "
    // Also those of others, whose rows do not say what they are.
    "(SELECT pg_catalog.count(datid) FROM pg_stat_activity) AS connections, "
    "(SELECT pg_catalog.age(datfrozenxid) FROM pg_database WHERE datname = "
    "pg_catalog.current_database()) AS transaction_age, "
    "(SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = "
    "pg_catalog.to_regclass('TABLE')::oid) AS dead_rows, "
    "(SELECT pg_catalog.max(token) FROM TABLE) AS last_token, "
    // Only this key keeps a name from having two rows, and so two holders.
    "EXISTS (SELECT 1 FROM pg_index x WHERE x.indrelid = "
    "pg_catalog.to_regclass('TABLE')::oid AND x.indisunique AND x.indisvalid AND x.indimmediate "
    "AND x.indpred IS NULL AND x.indexprs IS NULL AND (SELECT "
    "pg_catalog.string_agg(a.attname::text, ' ' ORDER BY a.attname::text) FROM pg_attribute a "
    "WHERE a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey::int2[])) = 'name slot') "
    "AS has_key, "
    "(SELECT pg_catalog.count(*) FROM (SELECT 1 FROM TABLE GROUP BY name, slot HAVING "
    "pg_catalog.count(*) > 1) AS doubled) AS doubled, "
    // Its worker writes over what is held here.
    "EXISTS (SELECT 1 FROM pg_subscription_rel WHERE srrelid = "
    "pg_catalog.to_regclass('TABLE')::oid) AS subscribed, "
    "(SELECT pg_catalog.string_agg(p.word, ', ') FROM (VALUES ('SELECT'), ('INSERT'), "
    "('UPDATE'), ('DELETE')) AS p(word) WHERE NOT pg_catalog.has_table_privilege("
    "pg_catalog.to_regclass('TABLE')::oid, p.word)) AS missing_rights, "
    // Others than backups, and how many of them each commit waits for.
    "(SELECT pg_catalog.count(*) FROM pg_stat_replication WHERE state IS NULL OR state <> "
    "'backup') AS standbys, "
    "(SELECT pg_catalog.count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', "
    "'quorum')) AS synchronous, "
    "(SELECT pg_catalog.bool_or(sync_state IN ('async', 'potential')) FROM pg_stat_replication "
    "WHERE state IS NULL OR state <> 'backup') AS some_asynchronous";

/// The same for one grant and for many: what a grant writes, `f` being the row as it was locked.
#define HOLDFAST_GRANT(OWNER, TTL, CLIENT, NEXT)                                               \
    "UPDATE TABLE l SET owner = " OWNER ", token = CASE WHEN l.owner = " OWNER                 \
    " AND l.expires > CLOCK THEN l.token ELSE greatest(l.token + 1, NOW) END, "                \
    "previous = CASE WHEN l.owner IS NULL THEN l.mark WHEN l.owner = " OWNER                   \
    " THEN l.previous ELSE 3 END, "                                                            \
    "acquired = CASE WHEN l.owner = " OWNER                                                    \
    " THEN l.acquired ELSE CLOCK END, "                                                        \
    "expires = CLOCK + " TTL                                                                   \
    " * interval '1 millisecond', mark = 0, revoked = false, "                                 \
    "line = CASE WHEN " NEXT " < 0 THEN l.line WHEN " NEXT " = 0 THEN nullif(l.line - " CLIENT \
    ", '{}') ELSE coalesce(l.line, '{}') || pg_catalog.jsonb_build_object(" CLIENT             \
    ", pg_catalog.jsonb_build_array(" NEXT                                                     \
    ", NOW + PLACE)) END "                                                                     \
    "FROM f WHERE l.name = f.name AND l.slot = f.slot "

/// The same for one row, for which somebody else's transaction is waited, and for many, of which
/// those that it has locked are left out.
#define HOLDFAST_WRITE(LOCKED)                                                                     \
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.owner AS who, r.token, r.expires, "          \
    "r.acquired, r.mark, r.previous, r.revoked, r.text FROM unnest($1::text[], $2::text[], "       \
    "$3::text[], $4::bigint[], $5::float8[], $6::float8[], $7::smallint[], $8::smallint[], "       \
    "$9::boolean[], $10::text[], $11::float8[]) AS r(name, version, owner, token, expires, "       \
    "acquired, mark, previous, revoked, text, deadline) "                                          \
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 WHERE l.xmin::text = r.version "               \
    "AND CLOCK < 'epoch'::timestamptz + r.deadline * interval '1 microsecond' "                    \
    "AND (SELECT pg_catalog.set_config('synchronous_commit', $12::text, true) || "                 \
    "pg_catalog.set_config('lock_timeout', $13::text, true)) <> '' "                               \
    "ORDER BY l.name FOR UPDATE OF l" LOCKED                                                       \
    ") "                                                                                           \
    "UPDATE TABLE l SET owner = nullif(f.who, ''), token = f.token, "                              \
    "expires = 'epoch'::timestamptz + f.expires * interval '1 microsecond', "                      \
    "acquired = 'epoch'::timestamptz + f.acquired * interval '1 microsecond', "                    \
    "mark = f.mark, previous = f.previous, revoked = f.revoked, meta = nullif(f.text, '') FROM f " \
    "WHERE l.name = f.name AND l.slot = f.slot RETURNING l.name, l.line IS NOT NULL"

// NOLINTBEGIN(bugprone-suspicious-missing-comma): each text is several literals long.
constexpr std::string_view texts[] = {
    // grant
    "WITH f AS MATERIALIZED (SELECT name, slot FROM TABLE WHERE name = $1 AND slot = 0 "
    "AND meta IS NULL "
    "AND (owner IS NULL OR expires <= CLOCK OR owner = $2 AND NOT revoked) "
    "AND (gone IS NULL OR NOT gone ? $2::text) "
    "AND CLOCK < 'epoch'::timestamptz + $4::float8 * interval '1 microsecond' "
    "AND SYNC FOR UPDATE SKIP LOCKED) "  //
    HOLDFAST_GRANT("$2", "$3::float8", "$5::text", "$6::bigint") "RETURNING l.token, l.previous",
    // release
    "UPDATE TABLE SET owner = NULL, mark = $4::smallint WHERE name = $1 AND slot = 0 "
    "AND owner = $2 AND token = $3::bigint AND expires > CLOCK AND SOON "
    "RETURNING name, line IS NOT NULL, meta IS NOT NULL",
    // grant_many
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.owner AS who, r.ttl, r.next FROM "
    "unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $6::bigint[]) "
    "AS r(name, owner, ttl, deadline, next) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 WHERE l.meta IS NULL "
    "AND (l.owner IS NULL OR l.expires <= CLOCK OR l.owner = r.owner AND NOT "
    "l.revoked) "
    "AND (l.gone IS NULL OR NOT l.gone ? r.owner) "
    "AND CLOCK < 'epoch'::timestamptz + r.deadline * interval '1 microsecond' "
    "AND SYNC ORDER BY l.name FOR UPDATE OF l SKIP LOCKED) "  //
    HOLDFAST_GRANT("f.who", "f.ttl", "$5::text", "f.next") "RETURNING l.name, l.token, l.previous",
    // release_many
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.mark FROM "
    "unnest($1::text[], $2::text[], $3::bigint[], $4::smallint[]) AS r(name, owner, token, mark) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 WHERE l.owner = r.owner AND l.token = r.token "
    "AND l.expires > CLOCK AND SOON ORDER BY l.name FOR UPDATE OF l SKIP LOCKED) "
    "UPDATE TABLE l SET owner = NULL, mark = f.mark FROM f "
    "WHERE l.name = f.name AND l.slot = f.slot "
    "RETURNING l.name, l.line IS NOT NULL, l.meta IS NOT NULL",
    // ensure
    "INSERT INTO TABLE (name) SELECT r.name FROM pg_catalog.unnest($1::text[]) AS r(name) "
    "WHERE ASYNC ORDER BY r.name ON CONFLICT (name, slot) DO NOTHING",
    // stand
    // It waits for a grant or a release that is being committed, but not for long.
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.since FROM "
    "unnest($1::text[], $2::bigint[], $4::boolean[]) AS r(name, since, anyway) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 "
    "WHERE (l.owner IS NOT NULL AND l.expires > CLOCK OR r.anyway) "
    "AND ASYNC AND pg_catalog.set_config('lock_timeout', '20ms', true) <> '' "
    "ORDER BY l.name FOR UPDATE OF l) "
    "UPDATE TABLE l SET line = coalesce((SELECT pg_catalog.jsonb_object_agg(key, value) FROM "
    "pg_catalog.jsonb_each(l.line) WHERE (value->>1)::bigint > NOW), '{}') || "
    "pg_catalog.jsonb_build_object($3::text, pg_catalog.jsonb_build_array(f.since, NOW + PLACE)) "
    "FROM f "
    "WHERE l.name = f.name AND l.slot = f.slot RETURNING l.name",
    // tell
    "WITH f AS MATERIALIZED (SELECT name, slot, "
    "CASE WHEN $3::boolean THEN line - $2::text ELSE line END AS line, "
    "owner IS NULL OR expires <= CLOCK AS free FROM TABLE "
    "WHERE name = ANY ($1::text[]) AND slot = 0 AND line IS NOT NULL AND ASYNC "
    "ORDER BY name FOR UPDATE SKIP LOCKED), "
    "h AS MATERIALIZED (SELECT f.*, w.key AS first FROM f LEFT JOIN LATERAL "
    "(SELECT key FROM pg_catalog.jsonb_each(f.line) WHERE f.free AND (value->>1)::bigint > NOW "
    "ORDER BY (value->>0)::bigint, key LIMIT 1) w ON true) "
    "UPDATE TABLE l SET line = CASE WHEN h.first IS NULL AND h.free THEN NULL "
    "ELSE nullif(h.line - coalesce(h.first, ''), '{}') END FROM h "
    "WHERE l.name = h.name AND l.slot = h.slot RETURNING l.name, "
    "coalesce(h.first <> $2::text, false), "
    "CASE WHEN h.first <> $2::text THEN pg_catalog.pg_notify('holdfast_' || h.first, l.name) END",
    // renew
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.ttl FROM "
    "unnest($1::text[], $2::text[], $3::bigint[], $4::float8[]) AS r(name, owner, token, ttl) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 WHERE l.owner = r.owner AND l.token = r.token "
    "AND NOT l.revoked AND l.expires > CLOCK AND SYNC "
    "ORDER BY l.name FOR UPDATE OF l SKIP LOCKED) "
    "UPDATE TABLE l SET expires = CLOCK + f.ttl * interval '1 millisecond' FROM f "
    "WHERE l.name = f.name AND l.slot = f.slot RETURNING l.name, l.meta",
    // withdraw
    // The row is locked first and judged then: a grant of ours may be in the middle of its commit.
    "WITH f AS MATERIALIZED (SELECT l.name, l.slot, l.owner, r.owners::jsonb AS owners, r.until "
    "FROM "
    "unnest($1::text[], $2::text[], $3::bigint[]) AS r(name, owners, until) "
    "JOIN TABLE l ON l.name = r.name AND l.slot = 0 "
    "WHERE (l.meta IS NULL OR pg_catalog.starts_with(l.meta, 'hf 1')) "
    "AND SOON ORDER BY l.name FOR UPDATE OF l) "
    "UPDATE TABLE l SET mark = CASE WHEN f.owners ? l.owner THEN l.previous ELSE l.mark END, "
    "owner = CASE WHEN f.owners ? l.owner THEN NULL ELSE l.owner END, "
    "gone = (SELECT pg_catalog.jsonb_object_agg(key, value) FROM "
    "pg_catalog.jsonb_each(coalesce(l.gone, '{}'::jsonb) || f.owners) WHERE value::bigint > NOW) "
    "FROM f "
    "WHERE l.name = f.name AND l.slot = f.slot AND (f.owners ? f.owner OR f.until > NOW) "
    "RETURNING l.name, l.owner IS NULL AND l.line IS NOT NULL, l.meta IS NOT NULL",
    // read
    "SELECT name, owner, token, MICROS(expires), MICROS(acquired), mark, previous, revoked, meta, "
    "xmin::text, (line->$2::text->>1)::bigint > NOW + PLACE / 2, NOW "
    "FROM TABLE WHERE name = ANY ($1::text[]) AND slot = 0",
    // write
    // Whoever changed the row since it was read gave it another xmin; who is doing so is waited
    // for.
    HOLDFAST_WRITE(""),
    // write_many
    HOLDFAST_WRITE(" SKIP LOCKED"),
    // grant_free
    // What NameState makes of a free row, and columns_of writes.
    "WITH r AS MATERIALIZED (SELECT name, slot, token, mark, NOW AS at FROM TABLE "
    "WHERE name = $1 AND slot = 0 AND owner IS NULL AND meta IS NULL "
    "AND (gone IS NULL OR NOT gone ? $2::text) "
    "AND CLOCK < 'epoch'::timestamptz + $4::float8 * interval '1 microsecond' "
    "AND SYNC FOR UPDATE SKIP LOCKED), "
    "f AS MATERIALIZED (SELECT name, slot, at, "
    "CASE WHEN $7::boolean THEN greatest(token + 1, at) ELSE 0 END AS part, "
    "CASE WHEN $7::boolean THEN mark ELSE -1 END AS told FROM r) "
    "UPDATE TABLE l SET owner = CASE WHEN $7::boolean THEN 'hf:s' ELSE 'hf:p' END, "
    "token = greatest(l.token, f.part), revoked = false, "
    "acquired = 'epoch'::timestamptz + f.at::float8 * interval '1 microsecond', "
    "expires = 'epoch'::timestamptz + (f.at + $3::bigint)::float8 * interval '1 microsecond', "
    "meta = pg_catalog.format(E'hf 1\\npart %s %s %s %s %s %s %s %s %s 0 0 %s\\n', $5::bigint, "
    "$6::bigint, $7::boolean::integer, f.part, f.at, f.at + $3::bigint, f.at + $3::bigint, "
    "$3::bigint, f.told, $2::text) "
    "FROM f WHERE l.name = f.name AND l.slot = f.slot RETURNING f.part, f.told, "
    "l.line IS NOT NULL",
    // release_alone
    // Two lines, of which the second one is its own.
    "UPDATE TABLE SET owner = NULL, expires = 'epoch'::timestamptz, meta = NULL "
    "WHERE name = $1 AND slot = 0 "
    "AND owner = CASE WHEN $6::boolean THEN 'hf:s' ELSE 'hf:p' END AND expires > CLOCK "
    "AND pg_catalog.starts_with(meta, pg_catalog.format(E'hf 1\\npart %s %s %s %s ', $4::bigint, "
    "$5::bigint, $6::boolean::integer, $3::bigint)) "
    "AND pg_catalog.strpos(meta, pg_catalog.format(E' %s\\n', $2::text)) = "
    "pg_catalog.length(meta) - pg_catalog.length($2::text) - 1 "
    "AND pg_catalog.length(pg_catalog.replace(meta, E'\\n', '')) = pg_catalog.length(meta) - 2 "
    "AND SOON RETURNING name, line IS NOT NULL",
    // tell_all
    "SELECT l.name, pg_catalog.pg_notify('holdfast_' || w.key, l.name) FROM TABLE l, "
    "pg_catalog.jsonb_each(l.line) AS w WHERE l.name = ANY ($1::text[]) AND l.slot = 0 "
    "AND l.line IS NOT NULL AND (w.value->>1)::bigint > NOW AND w.key <> $2::text",
    // list
    "SELECT name FROM TABLE WHERE name >= $1 AND pg_catalog.starts_with(name, $1) AND slot = 0 "
    "AND owner IS NOT NULL AND expires > CLOCK ORDER BY name LIMIT $2::bigint",
    // record
    "INSERT INTO TABLE (name, slot, token, meta) SELECT $1::text, 1, NOW, $2::text WHERE ASYNC "
    "ON CONFLICT (name, slot) DO UPDATE SET token = excluded.token, "
    "acquired = excluded.acquired, meta = excluded.meta",
    // recorded
    "SELECT meta FROM TABLE WHERE name = $1 AND slot = 1 AND acquired > CLOCK - interval '1 day'",
    // sweep
    "WITH w AS MATERIALIZED (SELECT name, slot FROM TABLE WHERE name > $1 "
    "ORDER BY name, slot LIMIT 1000), "
    "f AS MATERIALIZED (SELECT l.name, l.slot FROM w JOIN TABLE l USING (name, slot) "
    "WHERE (l.owner IS NULL OR pg_catalog.starts_with(l.owner, 'hf:') "
    "AND l.expires < CLOCK - interval '1 day') "
    "AND (l.meta IS NULL OR pg_catalog.starts_with(l.meta, 'hf 1')) "
    "AND l.mark < 2 AND l.token < NOW - 86400000000 "
    "AND l.acquired < CLOCK - interval '1 day' "
    "AND ASYNC ORDER BY l.name FOR UPDATE OF l SKIP LOCKED), "
    "d AS (DELETE FROM TABLE l USING f WHERE l.name = f.name AND l.slot = f.slot RETURNING 1) "
    "SELECT pg_catalog.max(name), pg_catalog.count(*), (SELECT pg_catalog.count(*) FROM d) FROM w",
};
// NOLINTEND(bugprone-suspicious-missing-comma)
#undef HOLDFAST_WRITE
#undef HOLDFAST_GRANT

/// Of a time in a column; one that a person made may be infinite.
std::string micros_of(const std::string& column) {
    return "(pg_catalog.date_part('epoch', greatest(least(" + column +
           ", pg_catalog.clock_timestamp() + interval '10 years'), 'epoch'::timestamptz)) * "
           "1000000::float8)::bigint";
}

/// Replaces words by what they stand for; what stands there then is not looked at again.
std::string complete(std::string_view pattern, const std::string& table) {
    std::string in_literal;
    for (const char c : table)
        in_literal += c == '\'' ? "''" : std::string(1, c);
    const std::pair<std::string_view, std::string> words[] = {
        {"'TABLE'", "'" + in_literal + "'"},
        {"TABLE TABLE", "TABLE " + table},
        {"EXISTS TABLE", "EXISTS " + table},
        {"FROM TABLE", "FROM " + table},
        {"JOIN TABLE", "JOIN " + table},
        {"UPDATE TABLE", "UPDATE " + table},
        {"INTO TABLE", "INTO " + table},
        {"'COMMENT'", "'" + table_comment() + "'"},
        {"PLACE", std::to_string(std::chrono::microseconds(place_lasts).count())},
        {"SOON",
         "(SELECT pg_catalog.set_config('synchronous_commit', 'off', true) || "
         "pg_catalog.set_config('lock_timeout', "
         "'100ms', true)) = 'off100ms'"},
        {"ASYNC", "(SELECT pg_catalog.set_config('synchronous_commit', 'off', true)) = 'off'"},
        {"SYNC", "(SELECT pg_catalog.set_config('synchronous_commit', 'on', true)) = 'on'"},
        {"MICROS(expires)", micros_of("expires")},
        {"MICROS(acquired)", micros_of("acquired")},
        {"CLOCK", "pg_catalog.clock_timestamp()"},
        {"NOW",
         "(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::float8)::bigint"},
    };
    std::string text;
    while (!pattern.empty()) {
        const auto word = std::find_if(std::begin(words), std::end(words),
                                       [&](const auto& w) { return pattern.starts_with(w.first); });
        const bool plain = word == std::end(words);
        text += plain ? pattern.substr(0, 1) : std::string_view(word->second);
        pattern.remove_prefix(plain ? 1 : word->first.size());
    }
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

std::string as_identifier(std::string_view name) {
    if (name.empty()) return {};
    std::string out = "\"";
    for (const char c : name) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

int Statements::columns(Sql s) noexcept {
    constexpr std::uint8_t all[] = {2, 3, 3, 3, 0, 1, 3, 2, 3, 12, 2, 2, 3, 2, 2, 1, 0, 1, 3};
    static_assert(std::size(all) == static_cast<std::size_t>(Sql::count_));
    return all[static_cast<std::size_t>(s)];
}

Statements::Statements(const std::string& schema) {
    const std::string table = (schema.empty() ? "" : schema + ".") + "holdfast_lease";
    static_assert(std::size(texts) == static_cast<std::size_t>(Sql::count_));
    for (std::size_t i = 0; i < texts_.size(); ++i) {
        texts_[i] = complete(texts[i], table);
        names_[i] = name_of(texts_[i]);
    }
    create_ = complete(create_text, table);
    hello_ = complete(hello_text, table);
    audit_ = complete(audit_text, table);
    facts_ = complete(facts_text, table);
}

}  // namespace holdfast::postgresql
