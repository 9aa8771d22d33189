--- The tables.
---
--- mark: the next holder's previous_holder: 0 none, 1 released, 2 abandoned, 3 crashed.
--- previous: that of the present holder; a withdrawn grant passes it on.
--- ttl: what `expires` was counted from when written. A row is held only for that long, so a row from before a restart of the
--- machine closes the name no longer. The boot id is for people.
--- meta: empty if there is only an exclusive holder; else see common/name_text.hpp. Text with another beginning is from
--- another program, and is not touched.

-- name: create_schema
CREATE TABLE holdfast_format(
  id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL, last INTEGER NOT NULL,
  swept TEXT NOT NULL DEFAULT '');
CREATE TABLE holdfast_lease(
  name TEXT NOT NULL, slot INTEGER NOT NULL DEFAULT 0, owner TEXT, token INTEGER NOT NULL,
  expires INTEGER NOT NULL, boot_id TEXT NOT NULL, acquired INTEGER NOT NULL,
  mark INTEGER NOT NULL DEFAULT 0, previous INTEGER NOT NULL DEFAULT 0,
  revoked INTEGER NOT NULL DEFAULT 0, meta TEXT, ttl INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (name, slot)) WITHOUT ROWID;
INSERT INTO holdfast_format(id, format, last) VALUES (1, 2, 0);

-- name: which_tables
SELECT sum(name = 'holdfast_format') * 2 + sum(name = 'holdfast_lease') FROM
  sqlite_master WHERE name IN ('holdfast_format', 'holdfast_lease')

-- name: which_format
SELECT format FROM holdfast_format WHERE id = 1

--- Layout 1 had no ttl. Every renewal since a grant has moved `expires`, so the time between the two columns is at least its
--- ttl; no ttl is longer than a day.
-- name: from_first_layout
ALTER TABLE holdfast_lease ADD COLUMN ttl INTEGER NOT NULL DEFAULT 0;
UPDATE holdfast_lease SET ttl = min(expires - acquired, 86400000000) WHERE owner IS NOT NULL;
UPDATE holdfast_format SET format = 2;

--- Whether a lease of layout 1 may be alive: its holder cannot renew it in layout 2.
-- name: held_in_first_layout
SELECT count(*) FROM holdfast_lease WHERE owner IS NOT NULL AND expires > ?1 AND acquired <= ?1 AND boot_id = ?2
