-- once
CREATE TABLE IF NOT EXISTS "terapush_claims" (run text NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL, claimed_at timestamp with time zone NOT NULL DEFAULT now(), PRIMARY KEY (run, batch));
-- once
CREATE TABLE IF NOT EXISTS "terapush_runs" (name text NOT NULL, run text NOT NULL, part text NOT NULL, state text NOT NULL, epoch text NOT NULL, target text NOT NULL, owner text NOT NULL, appends bigint NOT NULL, fingerprint bigint NOT NULL, first_key bigint NOT NULL, last_key bigint NOT NULL, changed bigint NOT NULL, PRIMARY KEY (run, part));
-- once, to begin the run
BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '1000ms'; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); LOCK TABLE "terapush_runs" IN SHARE ROW EXCLUSIVE MODE;
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
CREATE TABLE "httplogs" ("ts" timestamp without time zone NOT NULL, "client_ip" text NOT NULL, "request" text NOT NULL, "status" bigint NOT NULL, "size" bigint NOT NULL, PRIMARY KEY ("ts")); COMMENT ON TABLE "httplogs" IS 'made by terapush';
-- per session
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout');
-- per session
DEALLOCATE ALL; PREPARE "terapush EPOCH" (bigint, bigint, bigint) AS INSERT INTO "terapush_claims" (run, batch, first_key, row_count) SELECT 'RUN', $1, $2, $3 FROM "terapush_runs" WHERE run = 'RUN' AND part = '0/1' AND epoch = 'EPOCH' AND state = 'open';
-- per session
SET application_name = 'terapush/RUN';
-- per batch
BEGIN ISOLATION LEVEL READ COMMITTED; EXECUTE "terapush EPOCH"(0, 0, 50000); COPY "httplogs" ("ts", "client_ip", "request", "status", "size") FROM STDIN WITH (FORMAT binary);
-- per batch
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric) FROM (SELECT (((CAST(date_part('epoch', date_trunc('second', "ts")) AS bigint) * 1000000 + CAST(date_part('microseconds', "ts") AS bigint) % 1000000) - 1767225600000000) - 0) / 50000 AS bucket, (((CAST(date_part('epoch', date_trunc('second', "ts")) AS bigint) * 1000000 + CAST(date_part('microseconds', "ts") AS bigint) % 1000000) - 1767225600000000) - 0) % 50000 AS o FROM "httplogs" WHERE "ts" BETWEEN CAST('2026-01-01 00:00:00.000000' AS timestamp) AND CAST('2026-01-01 00:00:00.049999' AS timestamp)) t GROUP BY bucket;
