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
UPDATE "terapush_runs" SET state = 'gone', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE target = 'documents' AND state IN ('closed', 'proven');
-- once, to begin the run
UPDATE "terapush_runs" SET first_key = 0, last_key = -1 WHERE target = 'documents' AND state = 'forgotten';
-- once, to begin the run
INSERT INTO "terapush_runs" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'documents', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- once
CREATE TABLE "documents" ("document_id" bigint NOT NULL, "payload" bytea NOT NULL); COMMENT ON TABLE "documents" IS 'made by terapush';
-- per session
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout');
-- per session
DEALLOCATE ALL; PREPARE "terapush EPOCH" (bigint, bigint, bigint) AS INSERT INTO "terapush_claims" (run, batch, first_key, row_count) SELECT 'RUN', $1, $2, $3 FROM "terapush_runs" WHERE run = 'RUN' AND part = '0/1' AND epoch = 'EPOCH' AND state = 'open';
-- per session
SET application_name = 'terapush/RUN';
-- per batch
BEGIN ISOLATION LEVEL READ COMMITTED; EXECUTE "terapush EPOCH"(0, 0, 50000); COPY "documents" ("document_id", "payload") FROM STDIN WITH (FORMAT binary);
-- per batch
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric) FROM (SELECT ("document_id" - 0) / 50000 AS bucket, ("document_id" - 0) % 50000 AS o FROM "documents" WHERE "document_id" BETWEEN 0 AND 49999) t GROUP BY bucket;
