--- What {words} in statements.sql and session.sql stand for; {1}, {2}, ... are what follows the word there. {table} is the
--- table, {literal} its name as a literal, {place} how long a place in line lasts, {comment} the table's comment.

-- name: clock
pg_catalog.clock_timestamp()

--- The server's clock in us.
-- name: now
(pg_catalog.date_part('epoch', {clock}) * 1000000::float8)::bigint

--- Of a time in a column; one that a person made may be infinite.
-- name: micros
(pg_catalog.date_part('epoch', greatest(least({1}, {clock} + interval '10 years'), 'epoch'::timestamptz))
  * 1000000::float8)::bigint

--- Where a primary comes from: its timeline, which each promotion raises, and its cluster, which a standby has in common with
--- it. The timeline of the control file is that of the last checkpoint, and so may be the one before the promotion.
-- name: origin
CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN
    pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8) END,
  (SELECT system_identifier::text FROM pg_catalog.pg_control_system())

--- How the commit is made durable, by a subquery, which runs once whatever the number of rows.
-- name: sync
(SELECT pg_catalog.set_config('synchronous_commit', 'on', true)) = 'on'

-- name: async
(SELECT pg_catalog.set_config('synchronous_commit', 'off', true)) = 'off'

--- As async, and gives up when somebody else has locked the row for longer: renewals wait behind it.
-- name: soon
(SELECT pg_catalog.set_config('synchronous_commit', 'off', true)
  || pg_catalog.set_config('lock_timeout', '100ms', true)) = 'off100ms'

--- What a grant writes, `f` being the row as it was locked. Owner, ttl, and what becomes of our place in line.
-- name: grants
UPDATE {table} l SET owner = {1},
  token = CASE WHEN l.owner = {1} AND l.expires > {clock} THEN l.token ELSE greatest(l.token + 1, {now}) END,
  previous = CASE WHEN l.owner IS NULL THEN l.mark WHEN l.owner = {1} THEN l.previous ELSE 3 END,
  acquired = CASE WHEN l.owner = {1} THEN l.acquired ELSE {clock} END,
  expires = {clock} + {2} * interval '1 millisecond', mark = 0, revoked = false,
  line = CASE WHEN {3} < 0 THEN l.line WHEN {3} = 0 THEN nullif(l.line - $5::text, '{}')
    ELSE coalesce(l.line, '{}')
      || pg_catalog.jsonb_build_object($5::text, pg_catalog.jsonb_build_array({3}, {now} + {place})) END
  FROM f WHERE l.name = f.name AND l.slot = f.slot

--- How many clients in the line of the row `l`, but this one, were notified.
-- name: all_told
(SELECT pg_catalog.count(pg_catalog.pg_notify('holdfast_' || w.key, l.name)) FROM pg_catalog.jsonb_each(l.line) AS w
    WHERE (w.value->>1)::bigint > {now} AND w.key <> {1}::text)

--- The rows that nobody has changed since they were read: whoever did gave them another xmin.
-- name: unchanged
WITH f AS MATERIALIZED (SELECT l.name, l.slot, r.owner AS who, r.token, r.expires, r.acquired, r.mark, r.previous, r.revoked,
    r.text, r.tells
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[], $6::float8[], $7::smallint[],
    $8::smallint[], $9::boolean[], $10::text[], $11::float8[], $14::boolean[])
    AS r(name, version, owner, token, expires, acquired, mark, previous, revoked, text, deadline, tells)
  JOIN {table} l ON l.name = r.name AND l.slot = 0
  WHERE l.xmin::text = r.version
    AND {clock} < 'epoch'::timestamptz + r.deadline * interval '1 microsecond'
    AND (SELECT pg_catalog.set_config('synchronous_commit', $12::text, true)
      || pg_catalog.set_config('lock_timeout', $13::text, true)) <> ''
  ORDER BY l.name FOR UPDATE OF l

-- name: writes
UPDATE {table} l SET owner = nullif(f.who, ''), token = f.token,
  expires = 'epoch'::timestamptz + f.expires * interval '1 microsecond',
  acquired = 'epoch'::timestamptz + f.acquired * interval '1 microsecond',
  mark = f.mark, previous = f.previous, revoked = f.revoked, meta = nullif(f.text, '')
  FROM f WHERE l.name = f.name AND l.slot = f.slot
  RETURNING l.name, l.line IS NOT NULL, CASE WHEN f.tells AND l.line IS NOT NULL THEN {all_told $15} END
