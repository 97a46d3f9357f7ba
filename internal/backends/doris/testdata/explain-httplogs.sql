-- once
CREATE TABLE IF NOT EXISTS `shop`.`documents` (
  `ts` DATETIME(6) NOT NULL,
  `client_ip` VARCHAR(15) NOT NULL,
  `request` VARCHAR(59) NOT NULL,
  `status` BIGINT NOT NULL,
  `size` BIGINT NOT NULL
)
DUPLICATE KEY(`ts`)
COMMENT 'made by terapush'
DISTRIBUTED BY HASH(`ts`) BUCKETS 4
PROPERTIES ("replication_num" = "1");
-- once, if the table is there
TRUNCATE TABLE `shop`.`documents`;
-- per session, and again after 5s or an error
PUT /api/shop/documents/_stream_load to a frontend, without a body;
-- per batch
PUT /api/shop/documents/_stream_load to the backend
  column_separator: \x01
  columns: `ts`, `client_ip`, `request`, `status`, `size`
  format: csv
  group_commit: off_mode
  label: terapush_RUN_1f351da5_0
  line_delimiter: \x02
  max_filter_ratio: 0
  strict_mode: true
  timezone: UTC;
-- after a lost answer
GET /api/shop/get_load_state?label=terapush_RUN_1f351da5_0;
-- after a lost answer, while the load is under way
POST /api/shop/_cancel?label=terapush_RUN_1f351da5_0;
-- after a lost answer
SELECT COUNT(*) FROM `shop`.`documents` WHERE `ts` BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.000999';
-- at the end, over all keys of the run, until every row can be read
SELECT COUNT(*) FROM `shop`.`documents` WHERE `ts` BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.000999';
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)) FROM (SELECT ((MICROSECONDS_DIFF(`ts`, '1970-01-01 00:00:00.000000') - 1767225600000000) - 0) DIV 1000 AS bucket, ((MICROSECONDS_DIFF(`ts`, '1970-01-01 00:00:00.000000') - 1767225600000000) - 0) % 1000 AS o FROM `shop`.`documents` WHERE `ts` BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.000999') t GROUP BY bucket;
