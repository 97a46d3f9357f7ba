-- per batch
PUT /v1/streaming_load
X-DATABEND-SQL: INSERT INTO `shop`.`people` (`id`, `name`, `raw`, `day`, `t`, `price`) FROM @_databend_load FILE_FORMAT = (type = PARQUET, missing_field_as = ERROR);
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS DECIMAL(38, 0))) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS DECIMAL(38, 0)) * CAST(o AS DECIMAL(38, 0))) AS DECIMAL(38, 0)) FROM (SELECT ((`id` - 100) - 0) DIV 50000 AS bucket, ((`id` - 100) - 0) % 50000 AS o FROM `shop`.`people` WHERE `id` BETWEEN 100 AND 50099) t GROUP BY bucket;
