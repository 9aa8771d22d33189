--- The table, and what is asked once in a session or by an operator. {words} are those of words.sql.

--- For people as well: sent with its lines as they are here.
-- name: create
CREATE TABLE IF NOT EXISTS holdfast_lease (
  name     VARBINARY(1024) NOT NULL,
  slot     TINYINT NOT NULL DEFAULT 0,
  owner    VARBINARY(512),
  token    BIGINT NOT NULL DEFAULT 0,
  expires  BIGINT NOT NULL DEFAULT 0,
  acquired BIGINT NOT NULL DEFAULT 0,
  mark     TINYINT NOT NULL DEFAULT 0,
  previous TINYINT NOT NULL DEFAULT 0,
  revoked  TINYINT NOT NULL DEFAULT 0,
  ver      BIGINT NOT NULL DEFAULT 0,
  gone     MEDIUMBLOB,
  meta     MEDIUMBLOB,
  PRIMARY KEY (name, slot)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC COMMENT = {comment};

--- What the server's or the user's settings would change in the statements. The session is ours alone. Of locks, the
--- shortest time that there is: no time in MariaDB, a second in MySQL. NAMES comes first, since a value that is sent as
--- text relies on it: a server may ignore what the client asked for when connecting, and have an init_connect.
-- name: settings
SET NAMES binary, timestamp = 1, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, completion_type = 0,
  lock_wait_timeout = IF(VERSION() LIKE '%MariaDB%', 0, 1),
  innodb_lock_wait_timeout = IF(VERSION() LIKE '%MariaDB%', 0, 1),
  sql_select_limit = 18446744073709551615, sql_big_selects = 1,
  group_concat_max_len = 1024

-- name: isolation
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE

--- Columns: see Connection::introduce. SYSDATE() is NOW() where it is the `timestamp` of the settings.
-- name: hello
SELECT CONNECTION_ID(), VERSION(), UNIX_TIMESTAMP(SYSDATE()) > 1, CONCAT(@@read_only) NOT IN ('0', 'OFF'), {now},
--- What makes a crash of the machine forget what was committed.
  CONCAT_WS(', ', IF(@@innodb_flush_log_at_trx_commit <> 1, 'innodb_flush_log_at_trx_commit is not 1', NULL),
    IF(@@log_bin AND @@sync_binlog <> 1, 'sync_binlog is not 1', NULL)),
  @@log_bin AND @@binlog_format = 'STATEMENT'

-- name: real_time
SET timestamp = DEFAULT

-- name: table_facts
SELECT TABLE_COMMENT, IFNULL(ENGINE, TABLE_TYPE) FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'holdfast_lease'

--- By itself: MariaDB 10.11.19 crashed on a subquery that depends on a row of information_schema.TABLES.
-- name: table_key
SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX) FROM information_schema.STATISTICS
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'holdfast_lease' AND INDEX_NAME = 'PRIMARY'

--- What examine.cpp judges, by name; those that a server does not have are left out.
-- name: variables
SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog',
  'innodb_doublewrite', 'wsrep_on', 'wsrep_cluster_size', 'max_connections', 'read_only', 'super_read_only',
  'max_statement_time', 'max_execution_time', 'wait_timeout', 'rpl_semi_sync_master_enabled',
  'rpl_semi_sync_source_enabled', 'group_replication_group_name')

-- name: replicas
SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'

-- name: counts
SELECT {now}, (SELECT MAX(token) FROM holdfast_lease),
  (SELECT COUNT(*) FROM (SELECT 1 FROM holdfast_lease GROUP BY name, slot HAVING COUNT(*) > 1) AS doubled)

-- name: connections
SHOW GLOBAL STATUS LIKE 'Threads_connected'

-- name: grants
SHOW GRANTS
