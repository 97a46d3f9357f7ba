-- once
DROP TABLE `shop`.`documents`;
-- once
CREATE TABLE IF NOT EXISTS `shop`.`documents` (
  `id` VARCHAR(40) NOT NULL,
  `run_id` VARCHAR(40) NOT NULL,
  `scenario` VARCHAR(20) NOT NULL,
  `ts` DATETIME(6) NOT NULL,
  `payload` VARCHAR(4000) NOT NULL
)
DUPLICATE KEY(`id`)
COMMENT 'made by terapush'
DISTRIBUTED BY HASH(`id`) BUCKETS 4
PROPERTIES ("replication_num" = "1");
-- per session, and again after 5s or an error
PUT /api/shop/documents/_stream_load to a frontend, without a body;
-- per batch
PUT /api/shop/documents/_stream_load to the backend
  columns: `id`, `run_id`, `scenario`, `ts`, `payload`
  format: json
  group_commit: off_mode
  label: terapush_RUN_1f351da5_0
  max_filter_ratio: 0
  read_json_by_line: true
  strict_mode: true
  timezone: UTC;
-- after a lost answer
GET /api/shop/get_load_state?label=terapush_RUN_1f351da5_0;
-- after a lost answer, while the load is under way
POST /api/shop/_cancel?label=terapush_RUN_1f351da5_0;
-- after a lost answer
SELECT COUNT(*) FROM `shop`.`documents` WHERE `id` BETWEEN '00000000000000000000' AND '00000000000000000999';
-- at the end, over all keys of the run, until every row can be read
SELECT COUNT(*) FROM `shop`.`documents` WHERE `id` BETWEEN '00000000000000000000' AND '00000000000000000999';
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)) FROM (SELECT (CAST(`id` AS BIGINT) - 0) DIV 1000 AS bucket, (CAST(`id` AS BIGINT) - 0) % 1000 AS o FROM `shop`.`documents` WHERE `id` BETWEEN '00000000000000000000' AND '00000000000000000999') t GROUP BY bucket;
