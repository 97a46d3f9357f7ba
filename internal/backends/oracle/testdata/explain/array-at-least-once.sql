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
-- per batch
INSERT INTO "JOURNAL" ("ID", "TS", "PAYLOAD") VALUES (:1, :2, :3);
-- per batch
COMMIT;
-- when a session ends
SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# WHERE n.name IN ('redo size', 'SQL*Net roundtrips to/from client', 'bytes received via SQL*Net from client', 'CPU used by this session', 'user commits');
-- to verify
SELECT TO_CHAR(bucket), TO_CHAR(COUNT(*)), TO_CHAR(MIN(o)), TO_CHAR(MAX(o)), TO_CHAR(SUM(o)), TO_CHAR(SUM(o * o)) FROM (SELECT TRUNC((TO_NUMBER("ID") - 0) / 3000) AS bucket, MOD((TO_NUMBER("ID") - 0), 3000) AS o FROM "JOURNAL" WHERE "ID" BETWEEN '00000000000000000000' AND '00000000000000002999') t GROUP BY bucket;
