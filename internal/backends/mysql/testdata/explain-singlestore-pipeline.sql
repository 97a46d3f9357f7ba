-- once
CREATE ROWSTORE TABLE IF NOT EXISTS `shop`.`terapush_runs` (
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
SET SESSION sql_mode = 'STRICT_ALL_TABLES';
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
  `payload` LONGBLOB NOT NULL,
  SHARD KEY (`document_id`),
  SORT KEY (`document_id`)
) COMMENT = 'made by terapush';
-- once, with the first session
LIST s3://bucket/in/2026/RUN/;
-- once, with the first session
CREATE PIPELINE `terapush_RUN` AS LOAD DATA S3 'bucket/in/2026/RUN/' CONFIG '{"region":"REGION"}' CREDENTIALS '{"aws_access_key_id":"***","aws_secret_access_key":"***"}' BATCH_INTERVAL 2500 STOP_ON_ERROR ON INTO TABLE `documents` FIELDS TERMINATED BY '\t' ENCLOSED BY '' ESCAPED BY '\\' LINES TERMINATED BY '\n' STARTING BY '' (`document_id`, `payload`);
-- once, with the first session
START PIPELINE IF NOT RUNNING `terapush_RUN`;
-- per batch
PUT s3://bucket/in/2026/RUN/000000000000.tsv;
-- per group
SELECT state FROM information_schema.pipelines WHERE database_name = 'shop' AND pipeline_name = 'terapush_RUN';
-- per group
SELECT state FROM information_schema.pipelines WHERE database_name = 'shop' AND pipeline_name = 'terapush_RUN';
-- per group
SELECT file_name, file_state, file_size FROM information_schema.pipelines_files WHERE database_name = 'shop' AND pipeline_name = 'terapush_RUN' AND SUBSTRING_INDEX(file_name, '/', -1) BETWEEN '000000000000.tsv' AND '000000000002.tsv';
-- per group
LIST s3://bucket/in/2026/RUN/;
-- per group
SELECT COUNT(*) FROM `shop`.`documents` WHERE `document_id` BETWEEN 0 AND 2999;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS DECIMAL(65, 0)), CAST(SUM(o * o) AS DECIMAL(65, 0)) FROM (SELECT (`document_id` - 0) DIV 1000 AS bucket, (`document_id` - 0) % 1000 AS o FROM `shop`.`documents` WHERE `document_id` BETWEEN 0 AND 999) t GROUP BY bucket;
-- afterwards
LIST s3://bucket/in/2026/RUN/;
-- afterwards
DROP PIPELINE IF EXISTS `terapush_RUN`;
