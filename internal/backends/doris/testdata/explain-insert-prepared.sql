-- once
CREATE TABLE IF NOT EXISTS `shop`.`documents` (
  `document_id` BIGINT NOT NULL,
  `payload` VARCHAR(512) NOT NULL
)
DUPLICATE KEY(`document_id`)
COMMENT 'made by terapush'
DISTRIBUTED BY HASH(`document_id`) BUCKETS 4
PROPERTIES ("group_commit_interval_ms" = "1000", "replication_num" = "1");
-- once, if the table is there with another value
ALTER TABLE `shop`.`documents` SET ("group_commit_interval_ms" = "1000");
-- per session
SET NAMES utf8mb4;
-- per session
SET enable_insert_strict = true;
-- per session
SET group_commit = async_mode;
-- per session
SET exec_mem_limit = '8G';
-- per session
COM_STMT_PREPARE INSERT INTO `shop`.`documents` (`document_id`, `payload`) VALUES (?, ?), …;
-- per batch
COM_STMT_EXECUTE with 2000 parameters;
-- per session
SHOW LAST INSERT;
-- at the end, over all keys of the run, until every row can be read
SELECT COUNT(DISTINCT `document_id`) FROM `shop`.`documents` WHERE `document_id` BETWEEN 0 AND 999;
-- at the end
GET /api/get_wal_size;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)) FROM (SELECT (`document_id` - 0) DIV 1000 AS bucket, (`document_id` - 0) % 1000 AS o FROM `shop`.`documents` WHERE `document_id` BETWEEN 0 AND 999) t GROUP BY bucket;
