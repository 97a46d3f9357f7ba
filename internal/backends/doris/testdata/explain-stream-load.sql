-- once
DROP TABLE `shop`.`documents`;
-- once
CREATE TABLE IF NOT EXISTS `shop`.`documents` (
  `id` BIGINT NOT NULL,
  `batch` VARCHAR(22) NOT NULL,
  `name` VARCHAR(16) NOT NULL,
  `birthday` DATE NOT NULL,
  `address` VARCHAR(40) NOT NULL,
  `company` VARCHAR(40) NOT NULL,
  `job` VARCHAR(40) NOT NULL,
  `bank` VARCHAR(18) NOT NULL,
  `password` VARCHAR(20) NOT NULL,
  `phone_number` VARCHAR(16) NOT NULL,
  `user_agent` VARCHAR(40) NOT NULL,
  `c1` VARCHAR(40) NOT NULL,
  `c2` VARCHAR(40) NOT NULL,
  `c3` VARCHAR(40) NOT NULL,
  `c4` VARCHAR(40) NOT NULL,
  `c5` VARCHAR(40) NOT NULL,
  `c6` VARCHAR(40) NOT NULL,
  `c7` VARCHAR(40) NOT NULL,
  `c8` VARCHAR(40) NOT NULL,
  `c9` VARCHAR(40) NOT NULL,
  `c10` VARCHAR(40) NOT NULL,
  `d` DATE NOT NULL,
  `t` DATETIME(6) NOT NULL
)
DUPLICATE KEY(`id`)
COMMENT 'made by terapush'
DISTRIBUTED BY HASH(`id`) BUCKETS 4
PROPERTIES ("replication_num" = "1");
-- per session, and again after 5s or an error
PUT /api/shop/documents/_stream_load to a frontend, without a body;
-- per batch
PUT /api/shop/documents/_stream_load to the backend
  column_separator: \x01
  columns: `id`, `batch`, `name`, `birthday`, `address`, `company`, `job`, `bank`, `password`, `phone_number`, `user_agent`, `c1`, `c2`, `c3`, `c4`, `c5`, `c6`, `c7`, `c8`, `c9`, `c10`, `d`, `t`
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
SELECT COUNT(*) FROM `shop`.`documents` WHERE `id` BETWEEN 0 AND 999;
-- at the end, over all keys of the run, until every row can be read
SELECT COUNT(*) FROM `shop`.`documents` WHERE `id` BETWEEN 0 AND 999;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)) FROM (SELECT (`id` - 0) DIV 1000 AS bucket, (`id` - 0) % 1000 AS o FROM `shop`.`documents` WHERE `id` BETWEEN 0 AND 999) t GROUP BY bucket;
