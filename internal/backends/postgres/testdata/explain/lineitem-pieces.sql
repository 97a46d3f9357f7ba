-- once
CREATE TABLE IF NOT EXISTS "terapush_runs" (name text NOT NULL, run text NOT NULL, part text NOT NULL, state text NOT NULL, epoch text NOT NULL, target text NOT NULL, owner text NOT NULL, appends bigint NOT NULL, fingerprint bigint NOT NULL, first_key bigint NOT NULL, last_key bigint NOT NULL, changed bigint NOT NULL, PRIMARY KEY (run, part));
-- once, to begin the run
BEGIN ISOLATION LEVEL SERIALIZABLE;
-- once, to begin the run
DELETE FROM "terapush_runs" WHERE run = 'RUN';
-- once, to begin the run
UPDATE "terapush_runs" SET state = 'forgotten', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE name = 'RUN' AND fingerprint = 0;
-- once, to begin the run
UPDATE "terapush_runs" SET state = 'gone', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE target = 'lineitem' AND state IN ('closed', 'proven');
-- once, to begin the run
UPDATE "terapush_runs" SET first_key = 0, last_key = -1 WHERE target = 'lineitem' AND state = 'forgotten';
-- once, to begin the run
INSERT INTO "terapush_runs" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'lineitem', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- once
CREATE TABLE "lineitem" ("l_orderkey" bigint NOT NULL, "l_partkey" bigint NOT NULL, "l_suppkey" bigint NOT NULL, "l_linenumber" bigint NOT NULL, "l_quantity" numeric(15,2) NOT NULL, "l_extendedprice" numeric(15,2) NOT NULL, "l_discount" numeric(15,2) NOT NULL, "l_tax" numeric(15,2) NOT NULL, "l_returnflag" text NOT NULL, "l_linestatus" text NOT NULL, "l_shipdate" date NOT NULL, "l_commitdate" date NOT NULL, "l_receiptdate" date NOT NULL, "l_shipinstruct" text NOT NULL, "l_shipmode" text NOT NULL, "l_comment" text NOT NULL, PRIMARY KEY ("l_orderkey" HASH, "l_linenumber")); COMMENT ON TABLE "lineitem" IS 'made by terapush';
-- per session
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout');
-- per session
SET application_name = 'terapush/RUN';
-- per batch
COPY "lineitem" ("l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount", "l_tax", "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode", "l_comment") FROM STDIN WITH (FORMAT binary, ROWS_PER_TRANSACTION 2);
-- to verify
SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric) FROM (SELECT (("l_orderkey" - 1) * 4 + ("l_linenumber" - 1) - 0) / 50000 AS bucket, (("l_orderkey" - 1) * 4 + ("l_linenumber" - 1) - 0) % 50000 AS o FROM "lineitem" WHERE "l_orderkey" BETWEEN 1 AND 12500 AND ("l_orderkey" - 1) * 4 + ("l_linenumber" - 1) BETWEEN 0 AND 49999) t GROUP BY bucket;
