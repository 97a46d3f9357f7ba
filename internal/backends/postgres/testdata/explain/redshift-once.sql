-- once
CREATE TABLE IF NOT EXISTS "terapush_runs" (name varchar(255) NOT NULL, run varchar(255) NOT NULL, part varchar(255) NOT NULL, state varchar(255) NOT NULL, epoch varchar(255) NOT NULL, target varchar(255) NOT NULL, owner varchar(255) NOT NULL, appends bigint NOT NULL, fingerprint bigint NOT NULL, first_key bigint NOT NULL, last_key bigint NOT NULL, changed bigint NOT NULL, PRIMARY KEY (run, part));
-- once, to begin the run
BEGIN; LOCK TABLE "terapush_runs";
-- once, to begin the run
DELETE FROM "terapush_runs" WHERE run = 'RUN';
-- once, to begin the run
UPDATE "terapush_runs" SET state = 'forgotten', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE name = 'RUN' AND fingerprint = 0;
-- once, to begin the run
UPDATE "terapush_runs" SET state = 'gone', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE target = 'people' AND state IN ('closed', 'proven');
-- once, to begin the run
UPDATE "terapush_runs" SET first_key = 0, last_key = -1 WHERE target = 'people' AND state = 'forgotten';
-- once, to begin the run
INSERT INTO "terapush_runs" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'people', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- once
CREATE TABLE "people" ("id" bigint NOT NULL, "name" character varying(40) NOT NULL, "birthday" date NOT NULL, "t" timestamp without time zone NOT NULL) DISTSTYLE EVEN SORTKEY ("id"); COMMENT ON TABLE "people" IS 'made by terapush';
-- per batch
PUT s3://bucket/in/2026/RUN/g000000000000/000000000000.csv;
-- per group
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET query_group TO 'terapush';
-- per group
SET application_name = 'terapush/RUN';
-- per group
BEGIN;
-- per group
COPY "people" ("id", "name", "birthday", "t") FROM 's3://bucket/in/2026/RUN/g000000000000/' ACCESS_KEY_ID '***' SECRET_ACCESS_KEY '***' FORMAT AS CSV REGION 'REGION' DATEFORMAT 'auto' TIMEFORMAT 'auto' MAXERROR 0 COMPUPDATE OFF STATUPDATE OFF;
-- per group
SELECT pg_last_copy_count();
-- per group
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS decimal(38, 0)), CAST(SUM(o * o) AS decimal(38, 0)) FROM (SELECT ("id" - 0) / 50000 AS bucket, ("id" - 0) % 50000 AS o FROM "people" WHERE "id" BETWEEN 0 AND 49999) t GROUP BY bucket;
