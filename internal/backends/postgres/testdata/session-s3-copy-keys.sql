SET statement_timeout = 0
SELECT version()
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET query_group TO 'terapush'
SELECT c.oid, 0, n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class'), 'p', has_table_privilege(c.oid, 'INSERT'), false FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE LOWER(c.relname) = 'people' AND LOWER(n.nspname) = current_schema()
SELECT attname, format_type(atttypid, atttypmod), NOT attnotnull, CASE WHEN atthasdef THEN 'a default' END FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attrelid = 16384 ORDER BY attnum
SELECT 1 FROM "public"."people" LIMIT 1
SELECT has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'DELETE'), 'logged', 't' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE LOWER(c.relname) = 'terapush_claims' AND LOWER(n.nspname) = 'public'
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET query_group TO 'terapush'
SELECT row_count FROM "public"."terapush_claims" WHERE run = 'run-1' AND batch = -2
SELECT COUNT(*) FROM "public"."people" WHERE "id" = 0
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET query_group TO 'terapush'
SET application_name = 'terapush/run-1'
BEGIN
LOCK TABLE "public"."terapush_claims"
SELECT row_count FROM "public"."terapush_claims" WHERE run = 'run-1' AND batch = -2
INSERT INTO "public"."terapush_claims" (run, batch, first_key, row_count) SELECT 'run-1', -2, 0, 1 FROM "public"."terapush_runs" WHERE run = 'run-1' AND part = '0/1' AND epoch = '' AND state = 'open'
COPY "public"."people" ("id", "name", "birthday", "t") FROM 's3://bucket/in/run-1/g999999999999/' ACCESS_KEY_ID 'AKIDTERAPUSH' SECRET_ACCESS_KEY 'SECRET' SESSION_TOKEN 'TOKEN' FORMAT AS CSV REGION 'eu-central-1' DATEFORMAT 'auto' TIMEFORMAT 'auto' MAXERROR 0 COMPUPDATE OFF STATUPDATE OFF
SELECT pg_last_copy_count()
ROLLBACK
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET query_group TO 'terapush'
SELECT row_count FROM "public"."terapush_claims" WHERE run = 'run-1' AND batch = -2
SELECT COUNT(*) FROM "public"."people" WHERE "id" = 0
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET query_group TO 'terapush'
SET application_name = 'terapush/run-1'
BEGIN
LOCK TABLE "public"."terapush_claims"
SELECT row_count FROM "public"."terapush_claims" WHERE run = 'run-1' AND batch = 0
INSERT INTO "public"."terapush_claims" (run, batch, first_key, row_count) SELECT 'run-1', 0, 0, 20 FROM "public"."terapush_runs" WHERE run = 'run-1' AND part = '0/1' AND epoch = '' AND state = 'open'
COPY "public"."people" ("id", "name", "birthday", "t") FROM 's3://bucket/in/run-1/g000000000000/' ACCESS_KEY_ID 'AKIDTERAPUSH' SECRET_ACCESS_KEY 'SECRET' SESSION_TOKEN 'TOKEN' FORMAT AS CSV REGION 'eu-central-1' DATEFORMAT 'auto' TIMEFORMAT 'auto' MAXERROR 0 COMPUPDATE OFF STATUPDATE OFF
SELECT pg_last_copy_count()
COMMIT
