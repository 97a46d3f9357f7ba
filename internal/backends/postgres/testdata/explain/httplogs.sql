-- once
CREATE TABLE IF NOT EXISTS "terapush_claims" (run text NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL, PRIMARY KEY (run, batch));
-- once
CREATE TABLE "httplogs" ("ts" timestamp without time zone NOT NULL, "client_ip" text NOT NULL, "request" text NOT NULL, "status" bigint NOT NULL, "size" bigint NOT NULL, PRIMARY KEY ("ts"));
-- once
COMMENT ON TABLE "httplogs" IS 'made by terapush';
-- per session
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout');
-- per session
SET application_name = 'terapush/RUN';
-- per batch
BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO "terapush_claims" (run, batch, first_key, row_count) VALUES ('RUN', 0, 0, 50000); COPY "httplogs" ("ts", "client_ip", "request", "status", "size") FROM STDIN WITH (FORMAT binary);
-- per batch
COMMIT;
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric) FROM (SELECT (((CAST(date_part('epoch', date_trunc('second', "ts")) AS bigint) * 1000000 + CAST(date_part('microseconds', "ts") AS bigint) % 1000000) - 1767225600000000) - 0) / 50000 AS bucket, (((CAST(date_part('epoch', date_trunc('second', "ts")) AS bigint) * 1000000 + CAST(date_part('microseconds', "ts") AS bigint) % 1000000) - 1767225600000000) - 0) % 50000 AS o FROM "httplogs" WHERE "ts" BETWEEN CAST('2026-01-01 00:00:00.000000' AS timestamp) AND CAST('2026-01-01 00:00:00.049999' AS timestamp)) t GROUP BY bucket;
-- afterwards
DELETE FROM "terapush_claims" WHERE run = 'RUN';
