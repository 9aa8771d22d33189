--- The statements that are prepared once in each session. statements.hpp says what each is for, its parameters and answer.
--- The lines of one are sent as one line; {words} are those of words.sql.
---
--- Any schema of search_path may have functions and operators, and one that fits the arguments better than the server's own
--- is taken, wherever it is. So functions are written with their schema, and operators stand between types that the
--- server's own are made for: an integer constant beside a float8, an oid beside a regclass or an untyped parameter beside a
--- jsonb is none of these. unnest of several arrays is syntax, and has no schema.

-- name: grant
WITH f AS MATERIALIZED (SELECT name, slot FROM {table}
  WHERE name = $1 AND slot = 0 AND meta IS NULL
    AND (owner IS NULL OR expires <= {clock} OR owner = $2 AND NOT revoked)
    AND (gone IS NULL OR NOT gone ? $2::text)
    AND {clock} < 'epoch'::timestamptz + $4::float8 * interval '1 microsecond'
    AND {sync} FOR UPDATE SKIP LOCKED)
{grants $2 $3::float8 $6::bigint}
  RETURNING l.token, l.previous, l.line IS NOT NULL

-- name: release
UPDATE {table} SET owner = NULL, mark = $4::smallint
  WHERE name = $1 AND slot = 0 AND owner = $2 AND token = $3::bigint AND expires > {clock} AND {soon}
  RETURNING name, line IS NOT NULL, meta IS NOT NULL

-- name: grant_many
WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.owner AS who, r.ttl, r.next
  FROM unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $6::bigint[])
    AS r(name, owner, ttl, deadline, next)
  JOIN {table} l ON l.name = r.name AND l.slot = 0
  WHERE l.meta IS NULL
    AND (l.owner IS NULL OR l.expires <= {clock} OR l.owner = r.owner AND NOT l.revoked)
    AND (l.gone IS NULL OR NOT l.gone ? r.owner)
    AND {clock} < 'epoch'::timestamptz + r.deadline * interval '1 microsecond'
    AND {sync} ORDER BY l.name FOR UPDATE OF l SKIP LOCKED)
{grants f.who f.ttl f.next}
  RETURNING l.name, l.token, l.previous, l.line IS NOT NULL

-- name: release_many
WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.mark
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::smallint[]) AS r(name, owner, token, mark)
  JOIN {table} l ON l.name = r.name AND l.slot = 0
  WHERE l.owner = r.owner AND l.token = r.token AND l.expires > {clock} AND {soon}
  ORDER BY l.name FOR UPDATE OF l SKIP LOCKED)
UPDATE {table} l SET owner = NULL, mark = f.mark FROM f
  WHERE l.name = f.name AND l.slot = f.slot
  RETURNING l.name, l.line IS NOT NULL, l.meta IS NOT NULL

--- A release, and `tell` for the client that is first in line; or `tell_all`, where only the waiters know whose turn it is.
-- name: hand_on
WITH f AS MATERIALIZED (SELECT name, slot, line, meta IS NULL AS in_turn FROM {table}
  WHERE name = $1 AND slot = 0 AND owner = $2 AND token = $3::bigint AND expires > {clock} AND {soon} FOR UPDATE),
h AS MATERIALIZED (SELECT f.*, w.key AS first
  FROM f LEFT JOIN LATERAL (SELECT key FROM pg_catalog.jsonb_each(f.line)
    WHERE f.in_turn AND (value->>1)::bigint > {now} ORDER BY (value->>0)::bigint, key LIMIT 1) w ON true)
UPDATE {table} l SET owner = NULL, mark = $4::smallint,
  line = CASE WHEN h.in_turn THEN nullif(CASE WHEN h.first IS NOT NULL THEN h.line - h.first END, '{}') ELSE h.line END
  FROM h WHERE l.name = h.name AND l.slot = h.slot
  RETURNING l.name, h.line IS NOT NULL, NOT h.in_turn, coalesce(h.first <> $5::text, false),
    CASE WHEN h.first <> $5::text THEN pg_catalog.pg_notify('holdfast_' || h.first, l.name) END,
    CASE WHEN NOT h.in_turn AND l.line IS NOT NULL THEN {all_told $5} END

-- name: ensure
INSERT INTO {table} (name) SELECT r.name FROM pg_catalog.unnest($1::text[]) AS r(name)
  WHERE {async} ORDER BY r.name ON CONFLICT (name, slot) DO NOTHING

--- It waits for a grant or a release that is being committed, but not for long.
-- name: stand
WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.since
  FROM unnest($1::text[], $2::bigint[], $4::boolean[]) AS r(name, since, anyway)
  JOIN {table} l ON l.name = r.name AND l.slot = 0
  WHERE (l.owner IS NOT NULL AND l.expires > {clock} OR r.anyway)
    AND {async} AND pg_catalog.set_config('lock_timeout', '20ms', true) <> ''
  ORDER BY l.name FOR UPDATE OF l)
UPDATE {table} l SET
  line = coalesce((SELECT pg_catalog.jsonb_object_agg(key, value) FROM pg_catalog.jsonb_each(l.line)
      WHERE (value->>1)::bigint > {now}), '{}')
    || pg_catalog.jsonb_build_object($3::text, pg_catalog.jsonb_build_array(f.since, {now} + {place}))
  FROM f WHERE l.name = f.name AND l.slot = f.slot
  RETURNING l.name

-- name: tell
WITH f AS MATERIALIZED (SELECT name, slot, CASE WHEN $3::boolean THEN line - $2::text ELSE line END AS line,
    owner IS NULL OR expires <= {clock} AS free
  FROM {table}
  WHERE name = ANY ($1::text[]) AND slot = 0 AND line IS NOT NULL AND {async}
  ORDER BY name FOR UPDATE SKIP LOCKED),
h AS MATERIALIZED (SELECT f.*, w.key AS first
  FROM f LEFT JOIN LATERAL (SELECT key FROM pg_catalog.jsonb_each(f.line)
    WHERE f.free AND (value->>1)::bigint > {now} ORDER BY (value->>0)::bigint, key LIMIT 1) w ON true)
UPDATE {table} l SET
  line = CASE WHEN h.first IS NULL AND h.free THEN NULL ELSE nullif(h.line - coalesce(h.first, ''), '{}') END
  FROM h WHERE l.name = h.name AND l.slot = h.slot
  RETURNING l.name, coalesce(h.first <> $2::text, false),
    CASE WHEN h.first <> $2::text THEN pg_catalog.pg_notify('holdfast_' || h.first, l.name) END

-- name: renew
WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.ttl
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::float8[]) AS r(name, owner, token, ttl)
  JOIN {table} l ON l.name = r.name AND l.slot = 0
  WHERE l.owner = r.owner AND l.token = r.token AND NOT l.revoked AND l.expires > {clock} AND {sync}
  ORDER BY l.name FOR UPDATE OF l SKIP LOCKED)
UPDATE {table} l SET expires = {clock} + f.ttl * interval '1 millisecond' FROM f
  WHERE l.name = f.name AND l.slot = f.slot
  RETURNING l.name, l.meta

--- The row is locked first and judged then: a grant of ours may be in the middle of its commit.
-- name: withdraw
WITH f AS MATERIALIZED (SELECT l.name, l.slot, l.owner, r.owners::jsonb AS owners, r.until
  FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r(name, owners, until)
  JOIN {table} l ON l.name = r.name AND l.slot = 0
  WHERE (l.meta IS NULL OR pg_catalog.starts_with(l.meta, 'hf 1')) AND {soon}
  ORDER BY l.name FOR UPDATE OF l)
UPDATE {table} l SET
  mark = CASE WHEN f.owners ? l.owner THEN l.previous ELSE l.mark END,
  owner = CASE WHEN f.owners ? l.owner THEN NULL ELSE l.owner END,
  gone = (SELECT pg_catalog.jsonb_object_agg(key, value)
    FROM pg_catalog.jsonb_each(coalesce(l.gone, '{}'::jsonb) || f.owners) WHERE value::bigint > {now})
  FROM f WHERE l.name = f.name AND l.slot = f.slot AND (f.owners ? f.owner OR f.until > {now})
  RETURNING l.name, l.owner IS NULL AND l.line IS NOT NULL, l.meta IS NOT NULL

-- name: read
SELECT name, owner, token, {micros expires}, {micros acquired}, mark, previous, revoked, meta, xmin::text,
    (line->$2::text->>1)::bigint > {now} + {place} / 2, {now}
  FROM {table} WHERE name = ANY ($1::text[]) AND slot = 0

--- Waits for whoever is changing the row.
-- name: write
{unchanged})
{writes}

-- name: write_many
{unchanged} SKIP LOCKED)
{writes}

--- What NameState makes of a free row, and columns_of writes.
-- name: grant_free
WITH r AS MATERIALIZED (SELECT name, slot, token, mark, {now} AS at FROM {table}
  WHERE name = $1 AND slot = 0 AND owner IS NULL AND meta IS NULL
    AND (gone IS NULL OR NOT gone ? $2::text)
    AND {clock} < 'epoch'::timestamptz + $4::float8 * interval '1 microsecond'
    AND {sync} FOR UPDATE SKIP LOCKED),
f AS MATERIALIZED (SELECT name, slot, at, CASE WHEN $7::boolean THEN greatest(token + 1, at) ELSE 0 END AS part,
    CASE WHEN $7::boolean THEN mark ELSE -1 END AS told FROM r)
UPDATE {table} l SET owner = CASE WHEN $7::boolean THEN 'hf:s' ELSE 'hf:p' END,
  token = greatest(l.token, f.part), revoked = false,
  acquired = 'epoch'::timestamptz + f.at::float8 * interval '1 microsecond',
  expires = 'epoch'::timestamptz + (f.at + $3::bigint)::float8 * interval '1 microsecond',
  meta = pg_catalog.format(E'hf 1\npart %s %s %s %s %s %s %s %s %s 0 0 %s\n',
    $5::bigint, $6::bigint, $7::boolean::integer, f.part, f.at, f.at + $3::bigint, f.at + $3::bigint,
    $3::bigint, f.told, $2::text)
  FROM f WHERE l.name = f.name AND l.slot = f.slot
  RETURNING f.part, f.told, l.line IS NOT NULL

--- Of two lines in meta, of which the second one is its own.
-- name: release_alone
UPDATE {table} l SET owner = NULL, expires = 'epoch'::timestamptz, meta = NULL
  WHERE name = $1 AND slot = 0
    AND owner = CASE WHEN $6::boolean THEN 'hf:s' ELSE 'hf:p' END AND expires > {clock}
    AND pg_catalog.starts_with(meta, pg_catalog.format(E'hf 1\npart %s %s %s %s ',
      $4::bigint, $5::bigint, $6::boolean::integer, $3::bigint))
    AND pg_catalog.strpos(meta, pg_catalog.format(E' %s\n', $2::text)) =
      pg_catalog.length(meta) - pg_catalog.length($2::text) - 1
    AND pg_catalog.length(pg_catalog.replace(meta, E'\n', '')) = pg_catalog.length(meta) - 2
    AND {soon}
  RETURNING name, CASE WHEN line IS NOT NULL THEN {all_told $7} END

-- name: tell_all
SELECT name, {all_told $2} FROM {table} l WHERE name = ANY ($1::text[]) AND slot = 0 AND line IS NOT NULL

-- name: echo
SELECT pg_catalog.pg_notify($1::text, '') WHERE {async}

-- name: list
SELECT name FROM {table} WHERE name >= $1 AND pg_catalog.starts_with(name, $1) AND slot = 0
  AND owner IS NOT NULL AND expires > {clock} ORDER BY name LIMIT $2::bigint

-- name: record
INSERT INTO {table} (name, slot, token, meta) SELECT $1::text, 1, {now}, $2::text WHERE {async}
  ON CONFLICT (name, slot) DO UPDATE SET token = excluded.token,
  acquired = excluded.acquired, meta = excluded.meta

-- name: recorded
SELECT meta FROM {table} WHERE name = $1 AND slot = 1 AND acquired > {clock} - interval '1 day'

-- name: sweep
WITH w AS MATERIALIZED (SELECT name, slot FROM {table} WHERE name > $1 ORDER BY name, slot LIMIT 1000),
f AS MATERIALIZED (SELECT l.name, l.slot FROM w JOIN {table} l USING (name, slot)
  WHERE (l.owner IS NULL OR pg_catalog.starts_with(l.owner, 'hf:')) AND l.expires < {clock} - interval '1 day'
    AND (l.meta IS NULL OR pg_catalog.starts_with(l.meta, 'hf 1'))
    AND l.mark < 2 AND l.token < {now} - 86400000000
    AND l.acquired < {clock} - interval '1 day'
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.jsonb_each(l.gone) WHERE value::bigint > {now})
    AND {async} ORDER BY l.name FOR UPDATE OF l SKIP LOCKED),
d AS (DELETE FROM {table} l USING f WHERE l.name = f.name AND l.slot = f.slot RETURNING 1)
SELECT pg_catalog.max(name), pg_catalog.count(*), (SELECT pg_catalog.count(*) FROM d) FROM w
