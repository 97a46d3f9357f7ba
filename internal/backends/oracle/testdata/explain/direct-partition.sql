-- once
CREATE TABLE "TERAPUSH_CLAIMS" (run VARCHAR2(64) NOT NULL, batch NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, row_count NUMBER(19) NOT NULL, claimed_at TIMESTAMP DEFAULT SYSTIMESTAMP NOT NULL, PRIMARY KEY (run, batch)) NOCOMPRESS;
-- once
CREATE TABLE "TERAPUSH_RUNS" (name VARCHAR2(255) NOT NULL, run VARCHAR2(255) NOT NULL, part VARCHAR2(255) NOT NULL, state VARCHAR2(255) NOT NULL, epoch VARCHAR2(255) NOT NULL, target VARCHAR2(255) NOT NULL, owner VARCHAR2(255) NOT NULL, appends NUMBER(19) NOT NULL, fingerprint NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, last_key NUMBER(19) NOT NULL, changed NUMBER(19) NOT NULL, PRIMARY KEY (run, part)) NOCOMPRESS;
-- once, to begin the run
LOCK TABLE "TERAPUSH_RUNS" IN EXCLUSIVE MODE WAIT 1;
-- once, to begin the run
DELETE FROM "TERAPUSH_RUNS" WHERE run = 'RUN';
-- once, to begin the run
UPDATE "TERAPUSH_RUNS" SET state = 'forgotten', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE name = 'RUN' AND fingerprint = 0;
-- once, to begin the run
INSERT INTO "TERAPUSH_RUNS" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'journal', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- per session
ALTER SESSION SET OPTIMIZER_IGNORE_HINTS = FALSE;
-- per batch
BEGIN LOCK TABLE "TERAPUSH_CLAIMS" IN ROW EXCLUSIVE MODE; INSERT INTO "TERAPUSH_CLAIMS" (run, batch, first_key, row_count) SELECT :1, :2, :3, :4 FROM "TERAPUSH_RUNS" WHERE run = :5 AND part = :6 AND epoch = :7 AND state = 'open'; IF SQL%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-20735, 'the run is not open for this process'); END IF; END;
-- per batch
INSERT /*+ APPEND_VALUES */ INTO "JOURNAL" PARTITION ("P2026") ("ID", "TS", "PAYLOAD") VALUES (:1, :2, :3);
-- per batch
COMMIT;
-- when a session ends
SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# WHERE n.name IN ('redo size', 'SQL*Net roundtrips to/from client', 'bytes received via SQL*Net from client', 'CPU used by this session', 'user commits');
-- after a lost answer
SELECT 1 FROM "TERAPUSH_RUNS" WHERE run = 'RUN' AND part = '0/1' AND epoch = 'EPOCH' AND state = 'open';
-- after a lost answer
INSERT INTO "TERAPUSH_CLAIMS" (run, batch, first_key, row_count) VALUES ('RUN', 0, 0, 3000);
-- after a lost answer
ROLLBACK;
-- after a lost answer, if the claim is taken
SELECT TO_CHAR(row_count) FROM "TERAPUSH_CLAIMS" WHERE run = 'RUN' AND batch = 0;
-- to verify
SELECT TO_CHAR(bucket), TO_CHAR(COUNT(*)), TO_CHAR(MIN(o)), TO_CHAR(MAX(o)), TO_CHAR(SUM(o)), TO_CHAR(SUM(o * o)) FROM (SELECT TRUNC((TO_NUMBER("ID") - 0) / 3000) AS bucket, MOD((TO_NUMBER("ID") - 0), 3000) AS o FROM "JOURNAL" WHERE "ID" BETWEEN '00000000000000000000' AND '00000000000000002999') t GROUP BY bucket;
