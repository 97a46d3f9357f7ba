-- once
DROP TABLE `shop`.`documents`;
-- once
CREATE TABLE IF NOT EXISTS `shop`.`documents` (
  `document_id` BIGINT NOT NULL,
  `payload` VARCHAR(512) NOT NULL
)
DUPLICATE KEY(`document_id`)
COMMENT 'made by terapush'
DISTRIBUTED BY HASH(`document_id`) BUCKETS 32
PROPERTIES ("group_commit_data_bytes" = "1048576", "group_commit_interval_ms" = "1000", "replication_num" = "1");
-- per session, and again after 5s or an error
PUT /api/shop/documents/_stream_load to a frontend, without a body;
-- per batch
PUT /api/shop/documents/_stream_load to the backend
  columns: `document_id`, `payload`
  format: json
  group_commit: async_mode
  max_filter_ratio: 0
  read_json_by_line: true
  strict_mode: true
  timezone: UTC;
-- at the end, over all keys of the run, until every row can be read
SELECT COUNT(DISTINCT `document_id`) FROM `shop`.`documents` WHERE `document_id` BETWEEN 0 AND 999;
-- at the end
GET /api/get_wal_size;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)) FROM (SELECT (`document_id` - 0) DIV 1000 AS bucket, (`document_id` - 0) % 1000 AS o FROM `shop`.`documents` WHERE `document_id` BETWEEN 0 AND 999) t GROUP BY bucket;
