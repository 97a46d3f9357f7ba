-- once
CREATE TABLE IF NOT EXISTS "terapush_claims" (run varchar(64) NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL, claimed_at timestamp DEFAULT SYSDATE);
-- once
CREATE TABLE IF NOT EXISTS "terapush_runs" (name varchar(255) NOT NULL, run varchar(255) NOT NULL, part varchar(255) NOT NULL, state varchar(255) NOT NULL, epoch varchar(255) NOT NULL, target varchar(255) NOT NULL, owner varchar(255) NOT NULL, appends bigint NOT NULL, fingerprint bigint NOT NULL, first_key bigint NOT NULL, last_key bigint NOT NULL, changed bigint NOT NULL, PRIMARY KEY (run, part));
-- once, to begin the run
BEGIN; LOCK TABLE "terapush_runs";
-- once, to begin the run
DELETE FROM "terapush_runs" WHERE run = 'RUN';
-- once, to begin the run
UPDATE "terapush_runs" SET state = 'forgotten', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE name = 'RUN' AND fingerprint = 0;
-- once, to begin the run
UPDATE "terapush_runs" SET state = 'gone', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE target = 'httplogs' AND state IN ('closed', 'proven');
-- once, to begin the run
UPDATE "terapush_runs" SET first_key = 0, last_key = -1 WHERE target = 'httplogs' AND state = 'forgotten';
-- once, to begin the run
INSERT INTO "terapush_runs" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'httplogs', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- once
CREATE TABLE "httplogs" ("ts" timestamp without time zone NOT NULL, "client_ip" character varying(15) NOT NULL, "request" character varying(59) NOT NULL, "status" bigint NOT NULL, "size" bigint NOT NULL) DISTSTYLE EVEN SORTKEY ("ts"); COMMENT ON TABLE "httplogs" IS 'made by terapush';
-- per batch
PUT s3://bucket/in/2026/RUN/g000000000000/000000000000.csv;
-- per group
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET query_group TO 'terapush';
-- per group
SET application_name = 'terapush/RUN';
-- per group
BEGIN;
-- per group
LOCK TABLE "terapush_claims";
-- per group
SELECT row_count FROM "terapush_claims" WHERE run = 'RUN' AND batch = 0;
-- per group
INSERT INTO "terapush_claims" (run, batch, first_key, row_count) SELECT 'RUN', 0, 0, 5000000 FROM "terapush_runs" WHERE run = 'RUN' AND part = '0/1' AND epoch = 'EPOCH' AND state = 'open';
-- per group
COPY "httplogs" ("ts", "client_ip", "request", "status", "size") FROM 's3://bucket/in/2026/RUN/g000000000000/' IAM_ROLE default FORMAT AS CSV REGION 'REGION' DATEFORMAT 'auto' TIMEFORMAT 'auto' MAXERROR 0 COMPUPDATE OFF STATUPDATE OFF;
-- per group
SELECT pg_last_copy_count();
-- per group
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS decimal(38, 0)), CAST(SUM(o * o) AS decimal(38, 0)) FROM (SELECT ((DATEDIFF(microsecond, CAST('1970-01-01' AS timestamp), "ts") - 1767225600000000) - 0) / 50000 AS bucket, ((DATEDIFF(microsecond, CAST('1970-01-01' AS timestamp), "ts") - 1767225600000000) - 0) % 50000 AS o FROM "httplogs" WHERE "ts" BETWEEN CAST('2026-01-01 00:00:00.000000' AS timestamp) AND CAST('2026-01-01 00:00:00.049999' AS timestamp)) t GROUP BY bucket;
