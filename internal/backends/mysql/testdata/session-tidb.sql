SET NAMES utf8mb4;
SET SESSION sql_select_limit = 18446744073709551615, sql_big_selects = 1 /*M! , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */;
SET NAMES utf8mb4;
SET SESSION innodb_lock_wait_timeout = 60, sql_select_limit = 18446744073709551615, group_concat_max_len = 1048576, max_execution_time = 0;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION', tidb_txn_mode = 'pessimistic', time_zone = '+00:00';
SET SESSION autocommit = 1;
SELECT table_type, COALESCE(table_comment, ''), COALESCE(engine, ''), 'YES', COALESCE(create_time, '') FROM information_schema.tables t WHERE table_schema = 'db' AND table_name = 'documents';
SELECT table_type, COALESCE(table_comment, ''), COALESCE(engine, ''), 'YES', COALESCE(create_time, '') FROM information_schema.tables t WHERE table_schema = 'db' AND table_name = 'documents';
SELECT table_type, COALESCE(table_comment, ''), COALESCE(engine, ''), 'YES', COALESCE(create_time, '') FROM information_schema.tables t WHERE table_schema = 'db' AND table_name = 'terapush_claims';
CREATE TABLE IF NOT EXISTS `db`.`terapush_claims` (
  run VARCHAR(64) NOT NULL,
  batch BIGINT NOT NULL,
  first_key BIGINT NOT NULL,
  row_count BIGINT NOT NULL,
  connection BIGINT NOT NULL DEFAULT 0,
  claimed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (run, batch)
) COMMENT = 'made by terapush';
SELECT 1 FROM `db`.`terapush_runs` WHERE 1 = 0;
SELECT name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed FROM `db`.`terapush_runs` WHERE target = 'documents';
SET NAMES utf8mb4;
SET SESSION innodb_lock_wait_timeout = 60, sql_select_limit = 18446744073709551615, group_concat_max_len = 1048576, max_execution_time = 0;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION', tidb_txn_mode = 'pessimistic', time_zone = '+00:00';
SET SESSION autocommit = 1;
SET SESSION autocommit = 0;
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
INSERT IGNORE INTO `db`.`terapush_runs` (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('', '', '', 'lock', '', '', '', 0, 0, 0, 0, 0);
COMMIT;
SELECT epoch FROM `db`.`terapush_runs` WHERE run = '' AND part = '' FOR UPDATE;
SELECT name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed FROM `db`.`terapush_runs` WHERE target = 'documents';
SELECT name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed FROM `db`.`terapush_runs` WHERE name = 'test';
DELETE FROM `db`.`terapush_runs` WHERE run = 'test';
UPDATE `db`.`terapush_runs` SET state = 'forgotten', epoch = 'CHOSEN', owner = 'a test', changed = CHOSEN WHERE name = 'test' AND fingerprint = 0;
UPDATE `db`.`terapush_runs` SET state = 'gone', epoch = 'CHOSEN', owner = 'a test', changed = CHOSEN WHERE target = 'documents' AND state IN ('closed', 'proven');
UPDATE `db`.`terapush_runs` SET first_key = 0, last_key = -1 WHERE target = 'documents' AND state = 'forgotten';
INSERT INTO `db`.`terapush_runs` (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('test', 'test', '0/1', 'open', 'CHOSEN', 'documents', 'a test', 1, 0, 0, -1, CHOSEN);
COMMIT;
CREATE TABLE IF NOT EXISTS `db`.`documents` (
  `document_id` BIGINT NOT NULL,
  `payload` LONGBLOB NOT NULL
) COMMENT = 'made by terapush';
SELECT table_type, COALESCE(table_comment, ''), COALESCE(engine, ''), 'YES', COALESCE(create_time, '') FROM information_schema.tables t WHERE table_schema = 'db' AND table_name = 'documents';
SELECT tidb_table_id FROM information_schema.tables WHERE table_schema = 'db' AND table_name = 'documents';
SELECT column_name, column_type, is_nullable, column_default, extra, COALESCE(/*!50706 generation_expression, */ /*M!100205 generation_expression, */ NULL), column_comment, COALESCE(character_set_name, ''), COALESCE(character_maximum_length, 0) FROM information_schema.columns WHERE table_schema = 'db' AND table_name = 'documents' ORDER BY ordinal_position;
SELECT 1 FROM `db`.`documents` LIMIT 1;
SELECT table_type, COALESCE(table_comment, ''), COALESCE(engine, ''), 'YES', COALESCE(create_time, '') FROM information_schema.tables t WHERE table_schema = 'db' AND table_name = 'terapush_claims';
CREATE TABLE IF NOT EXISTS `db`.`terapush_claims` (
  run VARCHAR(64) NOT NULL,
  batch BIGINT NOT NULL,
  first_key BIGINT NOT NULL,
  row_count BIGINT NOT NULL,
  connection BIGINT NOT NULL DEFAULT 0,
  claimed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (run, batch)
) COMMENT = 'made by terapush';
SET NAMES utf8mb4;
SET SESSION innodb_lock_wait_timeout = 60, tidb_idle_transaction_timeout = 30, allow_auto_random_explicit_insert = 1, wait_timeout = 600, sql_select_limit = 18446744073709551615, group_concat_max_len = 1048576, max_execution_time = 0;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION', tidb_txn_mode = 'pessimistic';
SELECT CONNECTION_ID();
INSERT INTO `db`.`terapush_runs` (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('', 'test', 'session 0', 'session', '0/1', '', '', 0, 0, 0, 0, 0);
COMMIT;
SET SESSION autocommit = 0;
/* terapush run=test batch=0 */ INSERT INTO `db`.`terapush_claims` (run, batch, first_key, row_count, connection) SELECT 'test', 0, 0, 3, 0 FROM `db`.`terapush_runs` WHERE run = 'test' AND part = '0/1' AND epoch = 'CHOSEN' AND state = 'open';
/* terapush run=test batch=0 */ LOAD DATA LOCAL INFILE 'Reader::reader' INTO TABLE `db`.`documents` CHARACTER SET binary (`document_id`, `payload`);
SHOW WARNINGS;
COMMIT;
SELECT 1 FROM `db`.`terapush_runs` WHERE run = 'test' AND part = '0/1' AND epoch = 'CHOSEN' AND state = 'open';
START TRANSACTION;
SELECT row_count FROM `db`.`terapush_claims` WHERE run = 'test' AND batch = 1 FOR UPDATE;
ROLLBACK;
