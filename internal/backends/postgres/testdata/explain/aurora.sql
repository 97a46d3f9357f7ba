-- once
CREATE TABLE IF NOT EXISTS "terapush_runs" (name text NOT NULL, run text NOT NULL, part text NOT NULL, state text NOT NULL, epoch text NOT NULL, target text NOT NULL, owner text NOT NULL, appends bigint NOT NULL, fingerprint bigint NOT NULL, first_key bigint NOT NULL, last_key bigint NOT NULL, changed bigint NOT NULL, PRIMARY KEY (run, part));
-- once
INSERT INTO "terapush_runs" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'people', 'OWNER', 0, 0, 0, -1, 0);
-- once
CREATE TABLE IF NOT EXISTS "terapush_claims" (run text NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL, claimed_at timestamp with time zone NOT NULL DEFAULT now(), PRIMARY KEY (run, batch));
-- once
CREATE TABLE "people" ("id" bigint NOT NULL, "name" text NOT NULL, "birthday" date NOT NULL, "t" timestamp without time zone NOT NULL);
-- once
COMMENT ON TABLE "people" IS 'made by terapush';
-- per group
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout');
-- per group
SET application_name = 'terapush/RUN';
-- per group
BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO "terapush_claims" (run, batch, first_key, row_count) SELECT 'RUN', 0, 0, 5000000 FROM "terapush_runs" WHERE run = 'RUN' AND part = '0/1' AND epoch = 'EPOCH' AND state = 'open';
-- per group
SELECT aws_s3.table_import_from_s3('"people"', '"id", "name", "birthday", "t"', '(FORMAT csv)', aws_commons.create_s3_uri('bucket', 'in/2026/RUN/g000000000000/000000000000.csv', '…'));
-- per group
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric) FROM (SELECT ("id" - 0) / 50000 AS bucket, ("id" - 0) % 50000 AS o FROM "people" WHERE "id" BETWEEN 0 AND 49999) t GROUP BY bucket;
