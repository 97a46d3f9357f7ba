-- once
CREATE TABLE IF NOT EXISTS `shop`.`documents` (
  `l_orderkey` BIGINT NOT NULL,
  `l_linenumber` BIGINT NOT NULL,
  `l_partkey` BIGINT NOT NULL,
  `l_suppkey` BIGINT NOT NULL,
  `l_quantity` DECIMAL(15, 2) NOT NULL,
  `l_extendedprice` DECIMAL(15, 2) NOT NULL,
  `l_discount` DECIMAL(15, 2) NOT NULL,
  `l_tax` DECIMAL(15, 2) NOT NULL,
  `l_returnflag` VARCHAR(1) NOT NULL,
  `l_linestatus` VARCHAR(1) NOT NULL,
  `l_shipdate` DATE NOT NULL,
  `l_commitdate` DATE NOT NULL,
  `l_receiptdate` DATE NOT NULL,
  `l_shipinstruct` VARCHAR(17) NOT NULL,
  `l_shipmode` VARCHAR(7) NOT NULL,
  `l_comment` VARCHAR(43) NOT NULL
)
DUPLICATE KEY(`l_orderkey`, `l_linenumber`)
COMMENT 'made by terapush'
DISTRIBUTED BY HASH(`l_orderkey`) BUCKETS 4
PROPERTIES ("replication_num" = "1");
-- per batch
PUT s3://bucket/pre/fix/RUN/000000000000.doriscsv;
-- per group
HEAD of every object;
-- per group
SET NAMES utf8mb4;
-- per group
SET enable_insert_strict = true;
-- per group
SET group_commit = off_mode;
-- per group
SET exec_mem_limit = '8G';
-- per group
INSERT INTO `shop`.`documents` WITH LABEL `terapush_RUN_1f351da5_g0` (`l_orderkey`, `l_partkey`, `l_suppkey`, `l_linenumber`, `l_quantity`, `l_extendedprice`, `l_discount`, `l_tax`, `l_returnflag`, `l_linestatus`, `l_shipdate`, `l_commitdate`, `l_receiptdate`, `l_shipinstruct`, `l_shipmode`, `l_comment`) SELECT CAST(c1 AS BIGINT), CAST(c2 AS BIGINT), CAST(c3 AS BIGINT), CAST(c4 AS BIGINT), CAST(c5 AS DECIMAL(15, 2)), CAST(c6 AS DECIMAL(15, 2)), CAST(c7 AS DECIMAL(15, 2)), CAST(c8 AS DECIMAL(15, 2)), CAST(c9 AS STRING), CAST(c10 AS STRING), CAST(c11 AS DATE), CAST(c12 AS DATE), CAST(c13 AS DATE), CAST(c14 AS STRING), CAST(c15 AS STRING), CAST(c16 AS STRING) FROM S3("column_separator" = "\x01", "format" = "csv", "line_delimiter" = "\x02", "s3.access_key" = "***", "s3.endpoint" = "https://s3.REGION.amazonaws.com", "s3.region" = "REGION", "s3.secret_key" = "***", "uri" = "s3://bucket/pre/fix/RUN/{000000000000.doriscsv,000000000001.doriscsv,…}", "use_path_style" = "true");
-- after a lost answer
GET /api/shop/get_load_state?label=terapush_RUN_1f351da5_g0;
-- after a lost answer, while the load is under way
POST /api/shop/_cancel?label=terapush_RUN_1f351da5_g0;
-- after a lost answer
SELECT COUNT(*) FROM `shop`.`documents` WHERE `l_orderkey` BETWEEN 1 AND 1000 AND (`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) BETWEEN 0 AND 3999;
-- at the end, over all keys of the run, until every row can be read
SELECT COUNT(*) FROM `shop`.`documents` WHERE `l_orderkey` BETWEEN 1 AND 250 AND (`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) BETWEEN 0 AND 999;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)) FROM (SELECT ((`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) - 0) DIV 1000 AS bucket, ((`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) - 0) % 1000 AS o FROM `shop`.`documents` WHERE `l_orderkey` BETWEEN 1 AND 250 AND (`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) BETWEEN 0 AND 999) t GROUP BY bucket;
