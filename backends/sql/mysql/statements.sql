--- The statements on rows; a `?` is a value, in the order of statements.hpp, and {words} are those of words.sql. The lines of
--- one are sent as one line.
---
--- The assignments of an UPDATE run from left to right and see what those before them wrote: `acquired` is the time of the
--- grant, and `token` and `previous` come before `owner`. Each statement that writes counts `ver` up: a row that looks as it
--- did before was still written.

--- Of what its owner holds already, or held, the whole row says more.
-- name: grant
UPDATE holdfast_lease SET acquired = {now},
  token = LAST_INSERT_ID(8 * GREATEST(token + 1, acquired) + 1 + IF(owner IS NULL, mark, 3)) DIV 8,
  previous = IF(owner IS NULL, mark, 3), owner = ?, expires = acquired + ?, mark = 0, revoked = 0, ver = ver + 1
  WHERE name = ? AND slot = 0 AND meta IS NULL AND (owner IS NULL OR expires <= {now} AND owner <> ?)
    AND (gone IS NULL OR LOCATE(?, gone) = 0) AND {now} < ?

-- name: release
UPDATE holdfast_lease SET owner = NULL, mark = ?, ver = ver + 1
  WHERE name = ? AND slot = 0 AND meta IS NULL AND owner = ? AND token = ? AND expires > {now}

-- name: renew
UPDATE holdfast_lease SET expires = {now} + ?, ver = ver + 1
  WHERE name = ? AND slot = 0 AND meta IS NULL AND owner = ? AND token = ? AND NOT revoked AND expires > {now}

--- It waits for a grant of the owner that is just being committed, and keeps one that comes later out. Owners that are no
--- longer kept out stay in `gone` until the whole row is written; `expires` keeps the row from the sweep meanwhile.
-- name: withdraw
UPDATE holdfast_lease SET ver = ver + LAST_INSERT_ID(IF(meta IS NULL, 1, 2) + IF(owner = ?, 4, 0)),
  mark = IF(owner = ?, previous, mark), owner = IF(owner = ?, NULL, owner),
  expires = IF(owner IS NULL, GREATEST(expires, {now}), expires), gone = NULLIF(CONCAT(IFNULL(gone, ''), ?), '')
  WHERE name = ? AND slot = 0 AND (gone IS NULL OR LENGTH(gone) < ?)

--- A row that an operator deletes and that is made again has no version that it had before.
-- name: ensure
INSERT IGNORE INTO holdfast_lease (name, acquired, ver) VALUES (?, {now}, {now})

-- name: read
SELECT name, owner, token, expires, acquired, mark, previous, revoked, meta, ver, gone, {now}
  FROM holdfast_lease WHERE slot = 0 AND name IN (?)

-- name: write
UPDATE holdfast_lease SET owner = NULLIF(?, ''), token = ?, expires = ?, acquired = ?, mark = ?, previous = ?, revoked = ?,
  meta = NULLIF(?, ''), gone = NULLIF(?, ''), ver = ver + 1
  WHERE name = ? AND slot = 0 AND ver = ? AND {now} < ?

--- No name has a byte FF, since names are UTF-8.
-- name: list
SELECT name FROM holdfast_lease WHERE name BETWEEN ? AND CONCAT(?, x'FF') AND slot = 0
  AND owner IS NOT NULL AND expires > {now} ORDER BY name LIMIT ?

-- name: record
INSERT INTO holdfast_lease (name, slot, token, acquired, meta) VALUES (?, 1, {now}, {now}, ?)
  ON DUPLICATE KEY UPDATE token = VALUES(token), acquired = VALUES(acquired), meta = VALUES(meta), ver = ver + 1

-- name: recorded
SELECT meta FROM holdfast_lease WHERE name = ? AND slot = 1 AND acquired > {now} - {day}

-- name: sweep_window
SELECT MAX(name), COUNT(*) FROM
  (SELECT name FROM holdfast_lease WHERE name > ? ORDER BY name, slot LIMIT 1000) AS window_of_rows

-- name: sweep
DELETE FROM holdfast_lease WHERE name > ? AND name <= ?
  AND (owner IS NULL OR owner LIKE 'hf:%') AND expires < {now} - {day} AND (meta IS NULL OR meta LIKE 'hf 1%')
  AND mark < 2 AND token < {now} - {day} AND acquired < {now} - {day}
