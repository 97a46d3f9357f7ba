SET statement_timeout = 0
SELECT version()
SELECT name, current_setting(name) FROM pg_settings WHERE lower(name) IN ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'wal_compression', 'max_wal_size', 'checkpoint_timeout', 'shared_buffers', 'max_connections', 'autovacuum', 'data_checksums', 'server_encoding', 'default_transaction_isolation', 'yb_default_copy_from_rows_per_transaction')
SELECT 1 FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'aws_s3' AND p.proname = 'table_import_from_s3' LIMIT 1
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')
SELECT c.oid, c.relfilenode, n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class'), c.relpersistence, COALESCE((SELECT bool_and(has_column_privilege(attrelid, attnum, 'INSERT')) FROM pg_attribute WHERE attrelid = c.oid AND attname IN ('id', 'name', 'birthday', 't')), false) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('"people"')
SELECT attname, format_type(atttypid, NULL), format_type(atttypid, atttypmod), NOT (attnotnull OR typnotnull) OR atthasdef OR typdefault IS NOT NULL OR attidentity <> '', COALESCE(to_jsonb(a) ->> 'attgenerated', '') <> '' FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid WHERE attnum > 0 AND NOT attisdropped AND attrelid = 16384 ORDER BY attnum
SELECT 1 FROM "public"."people" LIMIT 1
SELECT has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'DELETE'), CASE c.relpersistence WHEN 'p' THEN 'logged' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END, EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indnatts = 2 AND array_length(i.indoption, 1) = 2 AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND a.attname IN ('run', 'batch')) = 2) FROM pg_class c WHERE c.oid = to_regclass('"public"."terapush_claims"')
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')
SELECT row_count FROM "public"."terapush_claims" WHERE run = 'run-1' AND batch = -2
SELECT COUNT(*) FROM "public"."people" WHERE "id" = 0
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')
SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity WHERE pid = pg_backend_pid()
SET application_name = 'terapush/run-1'
BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO "public"."terapush_claims" (run, batch, first_key, row_count) SELECT 'run-1', -2, 0, 1 FROM "public"."terapush_runs" WHERE run = 'run-1' AND part = '0/1' AND epoch = '' AND state = 'open'
SELECT aws_s3.table_import_from_s3($1, $2, $3, aws_commons.create_s3_uri($4, $5, $6), aws_commons.create_aws_credentials($7, $8, $9))
ROLLBACK
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')
SELECT row_count FROM "public"."terapush_claims" WHERE run = 'run-1' AND batch = -2
SELECT COUNT(*) FROM "public"."people" WHERE "id" = 0
SET statement_timeout = 0; SET client_encoding = 'UTF8'; SET lock_timeout = '90s'; SET idle_in_transaction_session_timeout = '2min'; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6; SET standard_conforming_strings = on; SET quote_all_identifiers = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')
SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity WHERE pid = pg_backend_pid()
SET application_name = 'terapush/run-1'
BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO "public"."terapush_claims" (run, batch, first_key, row_count) SELECT 'run-1', 0, 0, 20 FROM "public"."terapush_runs" WHERE run = 'run-1' AND part = '0/1' AND epoch = '' AND state = 'open'
SELECT aws_s3.table_import_from_s3($1, $2, $3, aws_commons.create_s3_uri($4, $5, $6), aws_commons.create_aws_credentials($7, $8, $9))
SELECT aws_s3.table_import_from_s3($1, $2, $3, aws_commons.create_s3_uri($4, $5, $6), aws_commons.create_aws_credentials($7, $8, $9))
COMMIT
with ["\"public\".\"people\"" "\"id\", \"name\", \"birthday\", \"t\"" "(FORMAT csv)" "bucket" "in/run-1/g999999999999/000000000000.csv" "eu-central-1" "AKIDTERAPUSH" "SECRET" "TOKEN"]
with ["\"public\".\"people\"" "\"id\", \"name\", \"birthday\", \"t\"" "(FORMAT csv)" "bucket" "in/run-1/g000000000000/000000000000.csv" "eu-central-1" "AKIDTERAPUSH" "SECRET" "TOKEN"]
with ["\"public\".\"people\"" "\"id\", \"name\", \"birthday\", \"t\"" "(FORMAT csv)" "bucket" "in/run-1/g000000000000/000000000001.csv" "eu-central-1" "AKIDTERAPUSH" "SECRET" "TOKEN"]
