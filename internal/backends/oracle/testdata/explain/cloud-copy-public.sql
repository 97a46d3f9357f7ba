-- once
CREATE TABLE "TERAPUSH_RUNS" (name VARCHAR2(255) NOT NULL, run VARCHAR2(255) NOT NULL, part VARCHAR2(255) NOT NULL, state VARCHAR2(255) NOT NULL, epoch VARCHAR2(255) NOT NULL, target VARCHAR2(255) NOT NULL, owner VARCHAR2(255) NOT NULL, appends NUMBER(19) NOT NULL, fingerprint NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, last_key NUMBER(19) NOT NULL, changed NUMBER(19) NOT NULL, PRIMARY KEY (run, part)) NOCOMPRESS;
-- once
INSERT INTO "TERAPUSH_RUNS" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'journal', 'OWNER', 0, 0, 0, -1, 0);
-- once
CREATE TABLE "JOURNAL" ("ID" VARCHAR2(40 BYTE) NOT NULL, "TS" TIMESTAMP(6) NOT NULL, "PAYLOAD" VARCHAR2(4000 BYTE) CHECK ("PAYLOAD" IS JSON));
-- once
COMMENT ON TABLE "JOURNAL" IS 'made by terapush';
-- per group
ALTER SESSION SET OPTIMIZER_IGNORE_HINTS = FALSE;
-- per group
BEGIN DBMS_CLOUD.CREATE_EXTERNAL_TABLE(table_name => 'TERAPUSH_RUN_G000000000000', file_uri_list => 'https://ns.compat.objectstorage.example/bucket/RUN/g000000000000/000000000000.csv,…', column_list => '"ID" VARCHAR2(40 BYTE), "TS" TIMESTAMP(6), "PAYLOAD" VARCHAR2(4000 BYTE)', field_list => '"ID" CHAR(42), "TS" CHAR(26) DATE_FORMAT TIMESTAMP MASK "YYYY-MM-DD HH24:MI:SS.FF6", "PAYLOAD" CHAR(2802)', format => '{"type":"csv with embedded","characterset":"AL32UTF8","trimspaces":"notrim","rejectlimit":"0"}'); END;
-- per group
INSERT /*+ APPEND */ INTO "JOURNAL" ("ID", "TS", "PAYLOAD") SELECT "ID", "TS", "PAYLOAD" FROM TERAPUSH_RUN_G000000000000;
-- per group
COMMIT;
-- per group
DROP TABLE TERAPUSH_RUN_G000000000000;
-- when a session ends
SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# WHERE n.name IN ('redo size', 'SQL*Net roundtrips to/from client', 'bytes received via SQL*Net from client', 'CPU used by this session', 'user commits');
-- to verify
SELECT TO_CHAR(bucket), TO_CHAR(COUNT(*)), TO_CHAR(MIN(o)), TO_CHAR(MAX(o)), TO_CHAR(SUM(o)), TO_CHAR(SUM(o * o)) FROM (SELECT TRUNC((TO_NUMBER("ID") - 0) / 3000) AS bucket, MOD((TO_NUMBER("ID") - 0), 3000) AS o FROM "JOURNAL" WHERE "ID" BETWEEN '00000000000000000000' AND '00000000000000002999') t GROUP BY bucket;
