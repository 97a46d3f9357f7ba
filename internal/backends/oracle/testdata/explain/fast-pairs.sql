-- once
CREATE TABLE "TERAPUSH_RUNS" (name VARCHAR2(255) NOT NULL, run VARCHAR2(255) NOT NULL, part VARCHAR2(255) NOT NULL, state VARCHAR2(255) NOT NULL, epoch VARCHAR2(255) NOT NULL, target VARCHAR2(255) NOT NULL, owner VARCHAR2(255) NOT NULL, appends NUMBER(19) NOT NULL, fingerprint NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, last_key NUMBER(19) NOT NULL, changed NUMBER(19) NOT NULL, PRIMARY KEY (run, part)) NOCOMPRESS;
-- once, to begin the run
LOCK TABLE "TERAPUSH_RUNS" IN EXCLUSIVE MODE WAIT 1;
-- once, to begin the run
DELETE FROM "TERAPUSH_RUNS" WHERE run = 'RUN';
-- once, to begin the run
UPDATE "TERAPUSH_RUNS" SET state = 'forgotten', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE name = 'RUN' AND fingerprint = 0;
-- once, to begin the run
UPDATE "TERAPUSH_RUNS" SET state = 'gone', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE target = 'pairs' AND state IN ('closed', 'proven');
-- once, to begin the run
UPDATE "TERAPUSH_RUNS" SET first_key = 0, last_key = -1 WHERE target = 'pairs' AND state = 'forgotten';
-- once, to begin the run
INSERT INTO "TERAPUSH_RUNS" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'pairs', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- once
CREATE TABLE "PAIRS" ("K" NUMBER(19) NOT NULL, "R" NUMBER(19) NOT NULL, "S" NUMBER(19) NOT NULL) SEGMENT CREATION IMMEDIATE NOCOMPRESS MEMOPTIMIZE FOR WRITE;
-- once
COMMENT ON TABLE "PAIRS" IS 'made by terapush';
-- once, if the table is there
BEGIN DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; END;
-- once, if the table is there
TRUNCATE TABLE "PAIRS";
-- per session
ALTER SESSION SET OPTIMIZER_IGNORE_HINTS = FALSE;
-- per batch
INSERT /*+ MEMOPTIMIZE_WRITE */ INTO "PAIRS" ("K", "R", "S") VALUES (:1, :2, :3);
-- per batch
COMMIT;
-- when a session ends
SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_WRITE_HWM_SEQID) FROM DUAL;
-- when a session ends
SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# WHERE n.name IN ('redo size', 'SQL*Net roundtrips to/from client', 'bytes received via SQL*Net from client', 'CPU used by this session', 'user commits');
-- before verification
BEGIN DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; END;
-- before verification
SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_APPLY_HWM_SEQID) FROM DUAL;
-- to verify
SELECT TO_CHAR(bucket), TO_CHAR(COUNT(*)), TO_CHAR(MIN(o)), TO_CHAR(MAX(o)), TO_CHAR(SUM(o)), TO_CHAR(SUM(o * o)) FROM (SELECT TRUNC(("K" - 0) / 3000) AS bucket, MOD(("K" - 0), 3000) AS o FROM "PAIRS" WHERE "K" BETWEEN 0 AND 2999) t GROUP BY bucket;
