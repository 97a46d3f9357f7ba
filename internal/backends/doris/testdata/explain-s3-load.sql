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
-- per batch
PUT s3://bucket/pre/fix/RUN/000000000000.doriscsv;
-- per group
HEAD of every object;
-- per group
SET enable_insert_strict = true;
-- per group
SET group_commit = off_mode;
-- per group
SET exec_mem_limit = '8G';
-- per group
INSERT INTO `shop`.`documents` WITH LABEL `terapush_RUN_1f351da5_g0` (`id`, `batch`, `name`, `birthday`, `address`, `company`, `job`, `bank`, `password`, `phone_number`, `user_agent`, `c1`, `c2`, `c3`, `c4`, `c5`, `c6`, `c7`, `c8`, `c9`, `c10`, `d`, `t`) SELECT CAST(c1 AS BIGINT), CAST(c2 AS STRING), CAST(c3 AS STRING), CAST(c4 AS DATE), CAST(c5 AS STRING), CAST(c6 AS STRING), CAST(c7 AS STRING), CAST(c8 AS STRING), CAST(c9 AS STRING), CAST(c10 AS STRING), CAST(c11 AS STRING), CAST(c12 AS STRING), CAST(c13 AS STRING), CAST(c14 AS STRING), CAST(c15 AS STRING), CAST(c16 AS STRING), CAST(c17 AS STRING), CAST(c18 AS STRING), CAST(c19 AS STRING), CAST(c20 AS STRING), CAST(c21 AS STRING), CAST(c22 AS DATE), CAST(c23 AS DATETIME(6)) FROM S3("column_separator" = "\x01", "format" = "csv", "line_delimiter" = "\x02", "s3.access_key" = "***", "s3.endpoint" = "ENDPOINT", "s3.region" = "REGION", "s3.secret_key" = "***", "uri" = "s3://bucket/pre/fix/RUN/{000000000000.doriscsv,000000000001.doriscsv,…}", "use_path_style" = "true");
-- after a lost answer
GET /api/shop/get_load_state?label=terapush_RUN_1f351da5_g0;
-- after a lost answer
POST /api/shop/_cancel?label=terapush_RUN_1f351da5_g0 while the load is under way;
-- after a lost answer
SELECT COUNT(*) FROM `shop`.`documents` WHERE `id` BETWEEN 0 AND 999;
-- at the end
SELECT COUNT(*) FROM `shop`.`documents` WHERE `id` BETWEEN 0 AND 999 -- over all keys of the run, until every row can be read;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)) FROM (SELECT (`id` - 0) DIV 1000 AS bucket, (`id` - 0) % 1000 AS o FROM `shop`.`documents` WHERE `id` BETWEEN 0 AND 999) t GROUP BY bucket;
