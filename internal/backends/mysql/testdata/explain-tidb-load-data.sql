-- once
CREATE TABLE IF NOT EXISTS `shop`.`terapush_claims` (
  run VARCHAR(64) NOT NULL,
  batch BIGINT NOT NULL,
  first_key BIGINT NOT NULL,
  row_count BIGINT NOT NULL,
  connection BIGINT NOT NULL DEFAULT 0,
  claimed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (run, batch)
) COMMENT = 'made by terapush';
-- once
CREATE TABLE IF NOT EXISTS `shop`.`terapush_runs` (
  name VARCHAR(64) NOT NULL,
  run VARCHAR(64) NOT NULL,
  part VARCHAR(64) NOT NULL,
  state VARCHAR(64) NOT NULL,
  epoch VARCHAR(64) NOT NULL,
  target VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
  owner VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
  appends BIGINT NOT NULL,
  fingerprint BIGINT NOT NULL,
  first_key BIGINT NOT NULL,
  last_key BIGINT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (run, part)
) COMMENT = 'made by terapush';
-- once, to begin the run
SET NAMES utf8mb4;
-- once, to begin the run
SET SESSION innodb_lock_wait_timeout = 60, sql_select_limit = 18446744073709551615, group_concat_max_len = 1048576, max_execution_time = 0;
-- once, to begin the run
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION', tidb_txn_mode = 'pessimistic', time_zone = '+00:00';
-- once, to begin the run
SET SESSION unique_checks = 0;
-- once, to begin the run
SET SESSION autocommit = 1;
-- once, to begin the run
SET SESSION autocommit = 0;
-- once, to begin the run
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
-- once, to begin the run
INSERT IGNORE INTO `shop`.`terapush_runs` (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('', '', '', 'lock', '', '', '', 0, 0, 0, 0, 0);
-- once, to begin the run
COMMIT;
-- once, to begin the run
SELECT epoch FROM `shop`.`terapush_runs` WHERE run = '' AND part = '' FOR UPDATE;
-- once, to begin the run
DELETE FROM `shop`.`terapush_runs` WHERE run = 'RUN';
-- once, to begin the run
UPDATE `shop`.`terapush_runs` SET state = 'forgotten', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE name = 'RUN' AND fingerprint = 0;
-- once, to begin the run
UPDATE `shop`.`terapush_runs` SET state = 'gone', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE target = 'documents' AND state IN ('closed', 'proven');
-- once, to begin the run
UPDATE `shop`.`terapush_runs` SET first_key = 0, last_key = -1 WHERE target = 'documents' AND state = 'forgotten';
-- once, to begin the run
INSERT INTO `shop`.`terapush_runs` (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'documents', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- once
CREATE TABLE IF NOT EXISTS `shop`.`documents` (
  `document_id` BIGINT NOT NULL,
  `payload` LONGBLOB NOT NULL
) COMMENT = 'made by terapush';
-- per session
SET NAMES utf8mb4;
-- per session
SET SESSION innodb_lock_wait_timeout = 60, tidb_idle_transaction_timeout = 30, allow_auto_random_explicit_insert = 1, wait_timeout = 600, sql_select_limit = 18446744073709551615, group_concat_max_len = 1048576, max_execution_time = 0;
-- per session
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION', tidb_txn_mode = 'pessimistic';
-- per session
SET SESSION unique_checks = 0;
-- per session
INSERT INTO `shop`.`terapush_runs` (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('', 'RUN', 'session 0', 'session', '0/1', '', '', 0, 0, 0, 0, 0);
-- per session
COMMIT;
-- per session
SET SESSION autocommit = 0;
-- per batch
/* terapush run=RUN batch=0 */ INSERT INTO `shop`.`terapush_claims` (run, batch, first_key, row_count, connection) SELECT 'RUN', 0, 0, 1000, 0 FROM `shop`.`terapush_runs` WHERE run = 'RUN' AND part = '0/1' AND epoch = 'EPOCH' AND state = 'open';
-- per batch
/* terapush run=RUN batch=0 */ LOAD DATA LOCAL INFILE 'Reader::NAME' INTO TABLE `shop`.`documents` CHARACTER SET binary (`document_id`, `payload`);
-- per batch
SHOW WARNINGS;
-- per batch
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS DECIMAL(65, 0)), CAST(SUM(o * o) AS DECIMAL(65, 0)) FROM (SELECT (`document_id` - 0) DIV 1000 AS bucket, (`document_id` - 0) % 1000 AS o FROM `shop`.`documents` WHERE `document_id` BETWEEN 0 AND 999) t GROUP BY bucket;
