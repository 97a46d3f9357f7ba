-- once
SELECT id FROM system.processes WHERE current_query_id IN ('QUERY-ID');
-- once
CREATE TABLE IF NOT EXISTS `shop`.`people` (
  `id` BIGINT NOT NULL,
  `name` VARCHAR NOT NULL,
  `raw` BINARY NOT NULL,
  `day` DATE NOT NULL,
  `t` TIMESTAMP NOT NULL,
  `price` DECIMAL(15, 2) NOT NULL
) COMMENT = 'made by terapush';
-- once, if the table is there
TRUNCATE TABLE `shop`.`people`;
-- per batch
PUT /v1/streaming_load
X-DATABEND-SQL: INSERT INTO `shop`.`people` (`id`, `name`, `raw`, `day`, `t`, `price`) FROM @_databend_load FILE_FORMAT = (type = CSV, field_delimiter = ',', record_delimiter = '\n', quote = '"', escape = '', skip_header = 0, empty_field_as = STRING, error_on_column_count_mismatch = true, compression = NONE)
X-DATABEND-DEDUPLICATE-LABEL: terapush:RUN:shop.people:0
X-DATABEND-QUERY-ID: of RUN, number and ATTEMPT;
-- after a lost answer and on a resume, on every host for every ATTEMPT so far
GET /v1/query/QUERY-ID/kill;
-- after a lost answer and on a resume, on every host until there is none
SELECT id FROM system.processes WHERE current_query_id IN ('QUERY-ID', '…');
-- after a lost answer and on a resume, on every host until there is none
KILL QUERY 'SESSION';
-- after a lost answer and on a resume
SELECT COUNT(*) FROM `shop`.`people` WHERE `t` BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.049999';
-- where a broken connection left a part of the rows in a table that terapush made
DELETE FROM `shop`.`people` WHERE `t` BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.049999'
X-DATABEND-DEDUPLICATE-LABEL: terapush:RUN:shop.people:0:removal-ATTEMPT
X-DATABEND-QUERY-ID: of RUN, number, ATTEMPT and try;
-- where a broken connection left a part of the rows in a table that terapush made
SELECT COUNT(*) FROM `shop`.`people` WHERE `t` BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.049999';
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS DECIMAL(38, 0))) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS DECIMAL(38, 0)) * CAST(o AS DECIMAL(38, 0))) AS DECIMAL(38, 0)) FROM (SELECT ((CAST(`t` AS BIGINT) - 1767225600000000) - 0) DIV 50000 AS bucket, ((CAST(`t` AS BIGINT) - 1767225600000000) - 0) % 50000 AS o FROM `shop`.`people` WHERE `t` BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.049999') t GROUP BY bucket;
