-- once
CREATE TABLE IF NOT EXISTS "terapush_claims" (run text NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL, PRIMARY KEY (run, batch));
-- once
CREATE TABLE "documents" ("document_id" bigint NOT NULL, "payload" bytea NOT NULL);
-- once
COMMENT ON TABLE "documents" IS 'made by terapush';
-- once
TRUNCATE TABLE "documents";
-- per session
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout');
-- per session
SET application_name = 'terapush/RUN';
-- per batch
BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO "terapush_claims" (run, batch, first_key, row_count) VALUES ('RUN', 0, 0, 50000); COPY "documents" ("document_id", "payload") FROM STDIN WITH (FORMAT binary);
-- per batch
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric) FROM (SELECT ("document_id" - 0) / 50000 AS bucket, ("document_id" - 0) % 50000 AS o FROM "documents" WHERE "document_id" BETWEEN 0 AND 49999) t GROUP BY bucket;
-- afterwards
DELETE FROM "terapush_claims" WHERE run = 'RUN';
