--- The table, and what is asked once in a session or by an operator. {words} are those of words.sql.

--- For people as well: sent with its lines as they are here.
-- name: create
CREATE TABLE IF NOT EXISTS {table} (
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
COMMENT ON TABLE {table} IS {comment};

--- Columns: see Connection::introduce. It looks at one row of one catalogue, as planning more than that takes ten times as
--- long as connecting.
-- name: hello
SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(),
  pg_catalog.current_setting('transaction_read_only'), {now},
  pg_catalog.obj_description(c.oid, 'pg_class'), c.oid::text || ' ' || c.xmin::text,
--- Nobody else may change it, and it has nothing that runs by itself: see audit.
  pg_catalog.pg_get_userbyid(c.relowner) = current_user AND c.relkind = 'r'
    AND NOT c.relhastriggers AND NOT c.relhasrules AND c.relchecks = 0 AND NOT c.relrowsecurity
    AND c.relacl IS NULL,
--- What makes a crash of the machine forget what was committed.
  pg_catalog.concat_ws(', ',
    CASE WHEN pg_catalog.current_setting('fsync') <> 'on' THEN 'fsync is off' END,
    CASE WHEN pg_catalog.current_setting('full_page_writes') <> 'on' THEN 'full_page_writes is off' END,
    CASE WHEN c.relpersistence <> 'p' THEN 'the table is UNLOGGED' END),
  c.relnamespace::regnamespace::text,
--- Only where the session is ours alone.
  CASE WHEN pg_catalog.pg_backend_pid() = $1::integer THEN
    pg_catalog.set_config('default_transaction_isolation', 'read committed', false)
    || pg_catalog.set_config('enable_seqscan', 'off', false)
    || pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false)
    || pg_catalog.set_config('jit', 'off', false)
    || pg_catalog.set_config('tcp_keepalives_idle', $2::text, false)
    || pg_catalog.set_config('tcp_keepalives_interval', $3::text, false)
    || pg_catalog.set_config('tcp_keepalives_count', $4::text, false) END,
  {origin}
  FROM (SELECT 1) AS always
  LEFT JOIN pg_class c ON c.oid = pg_catalog.to_regclass({literal})::oid

--- What a table can do to the roles that write into it: its owner may give it code at any time, and what code it has runs
--- with the writer's permissions.
-- name: audit
WITH t AS MATERIALIZED (SELECT c.oid, c.relowner, c.relkind, c.relrowsecurity, c.relacl
  FROM pg_class c WHERE c.oid = pg_catalog.to_regclass({literal})::oid),
me AS MATERIALIZED (SELECT oid, rolsuper FROM pg_roles WHERE rolname = current_user)
SELECT
--- Roles that may change the table and are not trusted with our permissions.
  (SELECT o.rolname FROM t, me, pg_roles o
    WHERE o.oid = t.relowner AND o.oid <> me.oid AND NOT o.rolsuper
      AND (me.rolsuper OR o.oid <> (SELECT datdba FROM pg_database WHERE datname = pg_catalog.current_database())
        AND NOT pg_catalog.pg_has_role(me.oid, o.oid, 'MEMBER'))),
--- What runs when somebody writes, beside what create has.
  (SELECT pg_catalog.string_agg(what, ', ') FROM
    (SELECT 'trigger ' || tgname::text FROM pg_trigger, t WHERE tgrelid = t.oid AND NOT tgisinternal
    UNION ALL SELECT 'rule ' || rulename::text FROM pg_rewrite, t WHERE ev_class = t.oid
    UNION ALL SELECT 'constraint ' || conname::text FROM pg_constraint, t WHERE conrelid = t.oid AND contype = 'c'
    UNION ALL SELECT 'index ' || i.relname::text FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid, t
      WHERE x.indrelid = t.oid AND (x.indexprs IS NOT NULL OR x.indpred IS NOT NULL)
    UNION ALL SELECT 'default of column ' || a.attname::text
      FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum, t
      WHERE d.adrelid = t.oid AND pg_catalog.pg_get_expr(d.adbin, d.adrelid) !~
        '^(0|false|clock_timestamp\(\)|''[^'']*''::timestamp with time zone)$'
    UNION ALL SELECT 'type of column ' || a.attname::text FROM pg_attribute a, t
      WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384::oid
    UNION ALL SELECT 'row security' FROM t WHERE relrowsecurity
    UNION ALL SELECT 'its kind: no plain table' FROM t WHERE relkind <> 'r') AS code(what)),
  (SELECT pg_catalog.string_agg(coalesce(r.rolname::text, 'PUBLIC'), ', ')
    FROM t, me, pg_catalog.aclexplode(t.relacl) g LEFT JOIN pg_roles r ON r.oid = g.grantee
    WHERE g.privilege_type = 'TRIGGER' AND g.grantee <> t.relowner AND g.grantee <> me.oid
      AND r.rolsuper IS NOT TRUE)

--- What examine.cpp judges, each column under the name of its fact. A role that may not know how others follow sees how many
--- there are.
-- name: facts
SELECT pg_catalog.version() AS version, {now} AS time_us,
  pg_catalog.current_setting('fsync') AS fsync,
  pg_catalog.current_setting('full_page_writes') AS full_page_writes,
  pg_catalog.current_setting('autovacuum') AS autovacuum,
  pg_catalog.current_setting('max_connections') AS max_connections,
  pg_catalog.current_setting('synchronous_standby_names') AS standby_names,
  (SELECT reset_val FROM pg_settings WHERE name = 'statement_timeout') AS statement_timeout,
  (SELECT reset_val FROM pg_settings WHERE name = 'idle_session_timeout') AS idle_timeout,
  (SELECT relpersistence::text FROM pg_class WHERE oid = pg_catalog.to_regclass({literal})::oid) AS persistence,
--- Also those of others, whose rows do not say what they are.
  (SELECT pg_catalog.count(datid) FROM pg_stat_activity) AS connections,
  (SELECT pg_catalog.age(datfrozenxid) FROM pg_database WHERE datname = pg_catalog.current_database())
    AS transaction_age,
  (SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = pg_catalog.to_regclass({literal})::oid) AS dead_rows,
  (SELECT pg_catalog.max(token) FROM {table}) AS last_token,
--- Only this key keeps a name from having two rows, and so two holders.
  EXISTS (SELECT 1 FROM pg_index x
    WHERE x.indrelid = pg_catalog.to_regclass({literal})::oid
      AND x.indisunique AND x.indisvalid AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL
      AND (SELECT pg_catalog.string_agg(a.attname::text, ' ' ORDER BY a.attname::text) FROM pg_attribute a
        WHERE a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey::int2[])) = 'name slot')
    AS has_key,
  (SELECT pg_catalog.count(*) FROM (SELECT 1 FROM {table} GROUP BY name, slot HAVING pg_catalog.count(*) > 1)
    AS doubled) AS doubled,
--- Its worker writes over what is held here.
  EXISTS (SELECT 1 FROM pg_subscription_rel WHERE srrelid = pg_catalog.to_regclass({literal})::oid) AS subscribed,
  (SELECT pg_catalog.string_agg(p.word, ', ')
    FROM (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS p(word)
    WHERE NOT pg_catalog.has_table_privilege(pg_catalog.to_regclass({literal})::oid, p.word)) AS missing_rights,
--- Others than backups, and how many of them each commit waits for.
  (SELECT pg_catalog.count(*) FROM pg_stat_replication WHERE state IS NULL OR state <> 'backup') AS standbys,
  (SELECT pg_catalog.count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS synchronous,
  (SELECT pg_catalog.bool_or(sync_state IN ('async', 'potential')) FROM pg_stat_replication
    WHERE state IS NULL OR state <> 'backup') AS some_asynchronous
