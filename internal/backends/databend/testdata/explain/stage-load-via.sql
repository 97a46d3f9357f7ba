-- once
SELECT id FROM system.processes WHERE current_query_id IN ('QUERY-ID');
-- once
CREATE OR REPLACE STAGE terapush_RUN URL = 's3://bucket/prefix/' CONNECTION = (endpoint_url = 'http://store:9000', region = 'eu-1', access_key_id = '***', secret_access_key = '***', enable_virtual_host_style = 'false');
-- once
CREATE TABLE IF NOT EXISTS `shop`.`people` (
  `id` BIGINT NOT NULL,
  `name` VARCHAR NOT NULL,
  `raw` BINARY NOT NULL,
  `day` DATE NOT NULL,
  `t` TIMESTAMP NOT NULL,
  `price` DECIMAL(15, 2) NOT NULL
) COMMENT = 'made by terapush';
-- per batch
PUT s3://bucket/prefix/RUN/000000000000.csv;
-- per group
COPY INTO `shop`.`people` (`id`, `name`, `raw`, `day`, `t`, `price`) FROM @terapush_RUN FILES = ('RUN/000000000000.csv', '…') FILE_FORMAT = (type = CSV, field_delimiter = ',', record_delimiter = '\n', quote = '"', escape = '', skip_header = 0, empty_field_as = STRING, error_on_column_count_mismatch = true, compression = NONE) ON_ERROR = abort
X-DATABEND-DEDUPLICATE-LABEL: terapush:RUN:shop.people:group-0
X-DATABEND-QUERY-ID: of RUN, number and ATTEMPT;
-- after a lost answer and on a resume, on every host for every ATTEMPT so far
GET /v1/query/QUERY-ID/kill;
-- after a lost answer and on a resume, on every host until there is none
SELECT id FROM system.processes WHERE current_query_id IN ('QUERY-ID', '…');
-- after a lost answer and on a resume, on every host until there is none
KILL QUERY 'SESSION';
-- after a lost answer and on a resume
SELECT COUNT(*) FROM `shop`.`people` WHERE `id` BETWEEN 100 AND 100099;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS DECIMAL(38, 0))) AS DECIMAL(38, 0)), CAST(SUM(CAST(o AS DECIMAL(38, 0)) * CAST(o AS DECIMAL(38, 0))) AS DECIMAL(38, 0)) FROM (SELECT ((`id` - 100) - 0) DIV 50000 AS bucket, ((`id` - 100) - 0) % 50000 AS o FROM `shop`.`people` WHERE `id` BETWEEN 100 AND 50099) t GROUP BY bucket;
-- per group, once it is in the table
POST s3://bucket?delete;
-- afterwards
LIST s3://bucket/prefix/RUN/;
-- afterwards
DROP STAGE IF EXISTS terapush_RUN;
