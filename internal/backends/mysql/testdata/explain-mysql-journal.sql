-- once
CREATE TABLE IF NOT EXISTS `shop`.`terapush_claims` (
  run VARCHAR(64) NOT NULL,
  batch BIGINT NOT NULL,
  first_key BIGINT NOT NULL,
  row_count BIGINT NOT NULL,
  connection BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (run, batch)
) ENGINE = InnoDB COMMENT = 'made by terapush';
-- once
CREATE TABLE IF NOT EXISTS `shop`.`journal` (
  `id` VARCHAR(40) CHARACTER SET utf8mb4 NOT NULL,
  `run_id` LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
  `scenario` LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
  `ts` DATETIME(6) NOT NULL,
  `payload` LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE = InnoDB COMMENT = 'made by terapush';
-- per session
SET NAMES utf8mb4;
-- per session
SET SESSION innodb_lock_wait_timeout = 60, lock_wait_timeout = 60, net_read_timeout = 300, net_write_timeout = 300, wait_timeout = 600, sql_select_limit = 18446744073709551615, group_concat_max_len = 1048576, max_execution_time = 0, sql_big_selects = 1, sql_safe_updates = 0;
-- per session
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION';
-- per session
SET SESSION autocommit = 0; GET DIAGNOSTICS @terapush_rows = ROW_COUNT;
-- per batch
/* terapush run=RUN batch=0 */ INSERT INTO `shop`.`terapush_claims` (run, batch, first_key, row_count, connection) VALUES ('RUN', 0, 0, 1000, 0); /* terapush run=RUN batch=0 */ LOAD DATA LOCAL INFILE 'Reader::NAME' INTO TABLE `shop`.`journal` CHARACTER SET utf8mb4 (`id`, `run_id`, `scenario`, `ts`, `payload`); GET DIAGNOSTICS @terapush_rows = ROW_COUNT; SHOW WARNINGS; SELECT @terapush_rows;
-- per batch
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS DECIMAL(65, 0)), CAST(SUM(o * o) AS DECIMAL(65, 0)) FROM (SELECT (CAST(`id` AS SIGNED) - 0) DIV 1000 AS bucket, (CAST(`id` AS SIGNED) - 0) % 1000 AS o FROM `shop`.`journal` WHERE `id` BETWEEN '00000000000000000000' AND '00000000000000000999') t GROUP BY bucket;
-- afterwards
DELETE FROM `shop`.`terapush_claims` WHERE run = 'RUN';
