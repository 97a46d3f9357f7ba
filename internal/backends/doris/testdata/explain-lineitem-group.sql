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
DISTRIBUTED BY HASH(`l_orderkey`) BUCKETS 32
PROPERTIES ("group_commit_data_bytes" = "1048576", "group_commit_interval_ms" = "1000", "replication_num" = "1");
-- once
TRUNCATE TABLE `shop`.`documents`;
-- per session
SET enable_insert_strict = true;
-- per session
SET group_commit = async_mode;
-- per session
SET exec_mem_limit = '8G';
-- per batch
INSERT INTO `shop`.`documents` (`l_orderkey`, `l_partkey`, `l_suppkey`, `l_linenumber`, `l_quantity`, `l_extendedprice`, `l_discount`, `l_tax`, `l_returnflag`, `l_linestatus`, `l_shipdate`, `l_commitdate`, `l_receiptdate`, `l_shipinstruct`, `l_shipmode`, `l_comment`) VALUES (…), …;
-- per session
SHOW LAST INSERT;
-- at the end
SELECT COUNT(DISTINCT (`l_orderkey` - 1) * 4 + (`l_linenumber` - 1)) FROM `shop`.`documents` WHERE `l_orderkey` BETWEEN 1 AND 250 AND (`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) BETWEEN 0 AND 999 -- over all keys of the run, until every row can be read;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)) FROM (SELECT ((`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) - 0) DIV 1000 AS bucket, ((`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) - 0) % 1000 AS o FROM `shop`.`documents` WHERE `l_orderkey` BETWEEN 1 AND 250 AND (`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) BETWEEN 0 AND 999) t GROUP BY bucket;
