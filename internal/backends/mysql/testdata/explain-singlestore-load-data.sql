-- once
CREATE ROWSTORE TABLE IF NOT EXISTS `shop`.`terapush_claims` (
  run VARCHAR(64) NOT NULL,
  batch BIGINT NOT NULL,
  first_key BIGINT NOT NULL,
  row_count BIGINT NOT NULL,
  connection BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (run, batch)
) COMMENT = 'made by terapush';
-- once
CREATE TABLE IF NOT EXISTS `shop`.`documents` (
  `document_id` BIGINT NOT NULL,
  `payload` LONGBLOB NOT NULL,
  SHARD KEY (`document_id`),
  SORT KEY (`document_id`)
) COMMENT = 'made by terapush';
-- per session
SET NAMES utf8mb4;
-- per session
SET SESSION sql_mode = 'STRICT_ALL_TABLES';
-- per session
SET SESSION unique_checks = 0;
-- per session
SET SESSION autocommit = 0;
-- per batch
/* terapush run=RUN batch=0 */ INSERT INTO `shop`.`terapush_claims` (run, batch, first_key, row_count, connection) VALUES ('RUN', 0, 0, 1000, 0);
-- per batch
/* terapush run=RUN batch=0 */ LOAD DATA LOCAL INFILE 'Reader::NAME' INTO TABLE `shop`.`documents` CHARACTER SET binary (`document_id`, `payload`);
-- per batch
SHOW WARNINGS;
-- per batch
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS DECIMAL(65, 0)), CAST(SUM(o * o) AS DECIMAL(65, 0)) FROM (SELECT (`document_id` - 0) DIV 1000 AS bucket, (`document_id` - 0) % 1000 AS o FROM `shop`.`documents` WHERE `document_id` BETWEEN 0 AND 999) t GROUP BY bucket;
-- afterwards
DELETE FROM `shop`.`terapush_claims` WHERE run = 'RUN';
