--- The statements that are prepared once for each connection. The lines of one are sent as one line.

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: look
SELECT f.format, f.last, l.owner, l.token, l.expires, l.ttl, l.acquired, l.mark, l.previous, l.revoked, l.meta
  FROM holdfast_format f LEFT JOIN holdfast_lease l ON l.name = ?1 AND l.slot = 0 WHERE f.id = 1

-- name: count
UPDATE holdfast_format SET last = ?1 WHERE id = 1

-- name: grant
INSERT INTO holdfast_lease(name, owner, token, expires, boot_id, acquired, previous, ttl)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
  ON CONFLICT (name, slot) DO UPDATE SET owner = excluded.owner, token = excluded.token, expires = excluded.expires,
    boot_id = excluded.boot_id, acquired = excluded.acquired, previous = excluded.previous,
    mark = 0, revoked = 0, ttl = excluded.ttl

-- name: renew
UPDATE holdfast_lease SET expires = ?2, ttl = ?3 WHERE name = ?1 AND slot = 0

-- name: release
UPDATE holdfast_lease SET owner = NULL, expires = 0, mark = ?2 WHERE name = ?1 AND slot = 0

-- name: write
INSERT INTO holdfast_lease(name, owner, token, expires, boot_id, acquired, previous, ttl, mark, revoked, meta)
  VALUES (?1, nullif(?2, ''), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, nullif(?11, ''))
  ON CONFLICT (name, slot) DO UPDATE SET owner = excluded.owner, token = excluded.token, expires = excluded.expires,
    boot_id = excluded.boot_id, acquired = excluded.acquired, previous = excluded.previous,
    ttl = excluded.ttl, mark = excluded.mark, revoked = excluded.revoked, meta = excluded.meta

-- name: data_version
PRAGMA data_version

-- name: list
SELECT name, expires, ttl FROM holdfast_lease WHERE name >= ?1 AND owner IS NOT NULL ORDER BY name, slot

-- name: record
INSERT INTO holdfast_lease(name, slot, token, expires, boot_id, acquired, meta) VALUES (?1, 1, ?2, 0, ?3, ?4, ?5)
  ON CONFLICT (name, slot) DO UPDATE SET token = excluded.token,
    boot_id = excluded.boot_id, acquired = excluded.acquired, meta = excluded.meta

-- name: recorded
SELECT meta FROM holdfast_lease WHERE name = ?1 AND slot = 1

-- name: sweep_window
SELECT l.name, l.slot, l.mark < 2 AND l.token < ?1
    AND (l.owner IS NULL OR l.owner GLOB 'hf:*') AND NOT (l.expires > ?3 AND l.expires - ?3 <= l.ttl + 1000)
    AND (l.meta IS NULL OR l.meta GLOB 'hf 1*')
  FROM holdfast_format f JOIN holdfast_lease l ON l.name > f.swept WHERE f.id = 1 ORDER BY l.name, l.slot LIMIT ?2

-- name: sweep_row
DELETE FROM holdfast_lease WHERE name = ?1 AND slot = ?2

-- name: sweep_mark
UPDATE holdfast_format SET swept = ?1 WHERE id = 1
