-- once
CREATE TABLE "JOURNAL" ("ID" VARCHAR2(40 BYTE) NOT NULL, "TS" TIMESTAMP(6) NOT NULL, "PAYLOAD" VARCHAR2(4000 BYTE) CHECK ("PAYLOAD" IS JSON), PRIMARY KEY ("ID"));
-- once
COMMENT ON TABLE "JOURNAL" IS 'made by terapush';
-- per row
INSERT INTO "JOURNAL" ("ID", "TS", "PAYLOAD") VALUES (:1, :2, :3);
-- per row
COMMIT;
-- after a lost answer
LOCK TABLE "JOURNAL" IN SHARE MODE WAIT 45;
-- after a lost answer
SELECT TO_CHAR(COUNT(*)), TO_CHAR(MIN(TO_NUMBER("ID"))), TO_CHAR(MAX(TO_NUMBER("ID"))) FROM "JOURNAL" WHERE "ID" BETWEEN '00000000000000000000' AND '00000000000000002999';
-- after a lost answer
ROLLBACK;
-- when a session ends
SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# WHERE n.name IN ('redo size', 'SQL*Net roundtrips to/from client', 'bytes received via SQL*Net from client', 'CPU used by this session', 'user commits');
-- to verify
SELECT TO_CHAR(bucket), TO_CHAR(COUNT(*)), TO_CHAR(MIN(o)), TO_CHAR(MAX(o)), TO_CHAR(SUM(o)), TO_CHAR(SUM(o * o)) FROM (SELECT TRUNC((TO_NUMBER("ID") - 0) / 3000) AS bucket, MOD((TO_NUMBER("ID") - 0), 3000) AS o FROM "JOURNAL" WHERE "ID" BETWEEN '00000000000000000000' AND '00000000000000002999') t GROUP BY bucket;
