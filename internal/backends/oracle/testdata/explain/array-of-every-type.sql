-- once
ALTER SESSION SET commit_logging = batch;
-- once
ALTER SESSION SET nls_date_format = 'YYYY-MM-DD';
-- once
CREATE TABLE "BULK"."TERAPUSH_CLAIMS" (run VARCHAR2(64) NOT NULL, batch NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, row_count NUMBER(19) NOT NULL, claimed_at TIMESTAMP DEFAULT SYSTIMESTAMP NOT NULL, PRIMARY KEY (run, batch)) NOCOMPRESS;
-- once
CREATE TABLE "BULK"."TERAPUSH_RUNS" (name VARCHAR2(255) NOT NULL, run VARCHAR2(255) NOT NULL, part VARCHAR2(255) NOT NULL, state VARCHAR2(255) NOT NULL, epoch VARCHAR2(255) NOT NULL, target VARCHAR2(255) NOT NULL, owner VARCHAR2(255) NOT NULL, appends NUMBER(19) NOT NULL, fingerprint NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, last_key NUMBER(19) NOT NULL, changed NUMBER(19) NOT NULL, PRIMARY KEY (run, part)) NOCOMPRESS;
-- once, to begin the run
ALTER SESSION SET commit_logging = batch;
-- once, to begin the run
ALTER SESSION SET nls_date_format = 'YYYY-MM-DD';
-- once, to begin the run
LOCK TABLE "BULK"."TERAPUSH_RUNS" IN EXCLUSIVE MODE WAIT 1;
-- once, to begin the run
DELETE FROM "BULK"."TERAPUSH_RUNS" WHERE run = 'RUN';
-- once, to begin the run
UPDATE "BULK"."TERAPUSH_RUNS" SET state = 'forgotten', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE name = 'RUN' AND fingerprint = 0;
-- once, to begin the run
UPDATE "BULK"."TERAPUSH_RUNS" SET state = 'gone', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE target = 'every' AND state IN ('closed', 'proven');
-- once, to begin the run
UPDATE "BULK"."TERAPUSH_RUNS" SET first_key = 0, last_key = -1 WHERE target = 'every' AND state = 'forgotten';
-- once, to begin the run
INSERT INTO "BULK"."TERAPUSH_RUNS" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'every', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- once
DROP TABLE "BULK"."EVERY" PURGE;
-- once
CREATE TABLE "BULK"."EVERY" ("ID" NUMBER(19) NOT NULL, "BODY" RAW(2000), "NAME" VARCHAR2(50 BYTE), "DAY" DATE NOT NULL, "AT" TIMESTAMP(6) NOT NULL, "PRICE" NUMBER(15,2) NOT NULL);
-- once
COMMENT ON TABLE "BULK"."EVERY" IS 'made by terapush';
-- per session
ALTER SESSION SET commit_logging = batch;
-- per session
ALTER SESSION SET nls_date_format = 'YYYY-MM-DD';
-- per batch
BEGIN LOCK TABLE "BULK"."TERAPUSH_CLAIMS" IN ROW EXCLUSIVE MODE; INSERT INTO "BULK"."TERAPUSH_CLAIMS" (run, batch, first_key, row_count) SELECT :1, :2, :3, :4 FROM "BULK"."TERAPUSH_RUNS" WHERE run = :5 AND part = :6 AND epoch = :7 AND state = 'open'; IF SQL%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-20735, 'the run is not open for this process'); END IF; END;
-- per batch
INSERT INTO "BULK"."EVERY" ("ID", "BODY", "NAME", "DAY", "AT", "PRICE") VALUES (:1, :2, :3, :4, :5, :6 / 100);
-- per batch
COMMIT;
-- when a session ends
SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# WHERE n.name IN ('redo size', 'SQL*Net roundtrips to/from client', 'bytes received via SQL*Net from client', 'CPU used by this session', 'user commits');
-- after a lost answer
ALTER SESSION SET commit_logging = batch;
-- after a lost answer
ALTER SESSION SET nls_date_format = 'YYYY-MM-DD';
-- after a lost answer
SELECT 1 FROM "BULK"."TERAPUSH_RUNS" WHERE run = 'RUN' AND part = '0/1' AND epoch = 'EPOCH' AND state = 'open';
-- after a lost answer
INSERT INTO "BULK"."TERAPUSH_CLAIMS" (run, batch, first_key, row_count) VALUES ('RUN', 0, 0, 3000);
-- after a lost answer
ROLLBACK;
-- after a lost answer, if the claim is taken
SELECT TO_CHAR(row_count) FROM "BULK"."TERAPUSH_CLAIMS" WHERE run = 'RUN' AND batch = 0;
-- to verify
ALTER SESSION SET commit_logging = batch;
-- to verify
ALTER SESSION SET nls_date_format = 'YYYY-MM-DD';
-- to verify
SELECT TO_CHAR(bucket), TO_CHAR(COUNT(*)), TO_CHAR(MIN(o)), TO_CHAR(MAX(o)), TO_CHAR(SUM(o)), TO_CHAR(SUM(o * o)) FROM (SELECT TRUNC(("ID" - 0) / 3000) AS bucket, MOD(("ID" - 0), 3000) AS o FROM "BULK"."EVERY" WHERE "ID" BETWEEN 0 AND 2999) t GROUP BY bucket;
