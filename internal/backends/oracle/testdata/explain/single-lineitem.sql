-- once
CREATE TABLE "TERAPUSH_RUNS" (name VARCHAR2(255) NOT NULL, run VARCHAR2(255) NOT NULL, part VARCHAR2(255) NOT NULL, state VARCHAR2(255) NOT NULL, epoch VARCHAR2(255) NOT NULL, target VARCHAR2(255) NOT NULL, owner VARCHAR2(255) NOT NULL, appends NUMBER(19) NOT NULL, fingerprint NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, last_key NUMBER(19) NOT NULL, changed NUMBER(19) NOT NULL, PRIMARY KEY (run, part)) NOCOMPRESS;
-- once, to begin the run
LOCK TABLE "TERAPUSH_RUNS" IN EXCLUSIVE MODE WAIT 1;
-- once, to begin the run
DELETE FROM "TERAPUSH_RUNS" WHERE run = 'RUN';
-- once, to begin the run
UPDATE "TERAPUSH_RUNS" SET state = 'forgotten', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE name = 'RUN' AND fingerprint = 0;
-- once, to begin the run
UPDATE "TERAPUSH_RUNS" SET state = 'gone', epoch = 'EPOCH', owner = 'OWNER', changed = 0 WHERE target = 'lineitem' AND state IN ('closed', 'proven');
-- once, to begin the run
UPDATE "TERAPUSH_RUNS" SET first_key = 0, last_key = -1 WHERE target = 'lineitem' AND state = 'forgotten';
-- once, to begin the run
INSERT INTO "TERAPUSH_RUNS" (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) VALUES ('RUN', 'RUN', '0/1', 'open', 'EPOCH', 'lineitem', 'OWNER', 0, 0, 0, -1, 0);
-- once, to begin the run
COMMIT;
-- once
CREATE TABLE "LINEITEM" ("L_ORDERKEY" NUMBER(19) NOT NULL, "L_PARTKEY" NUMBER(19) NOT NULL, "L_SUPPKEY" NUMBER(19) NOT NULL, "L_LINENUMBER" NUMBER(19) NOT NULL, "L_QUANTITY" NUMBER(15,2) NOT NULL, "L_EXTENDEDPRICE" NUMBER(15,2) NOT NULL, "L_DISCOUNT" NUMBER(15,2) NOT NULL, "L_TAX" NUMBER(15,2) NOT NULL, "L_RETURNFLAG" VARCHAR2(1 BYTE), "L_LINESTATUS" VARCHAR2(1 BYTE), "L_SHIPDATE" DATE NOT NULL, "L_COMMITDATE" DATE NOT NULL, "L_RECEIPTDATE" DATE NOT NULL, "L_SHIPINSTRUCT" VARCHAR2(17 BYTE), "L_SHIPMODE" VARCHAR2(7 BYTE), "L_COMMENT" VARCHAR2(43 BYTE), PRIMARY KEY ("L_ORDERKEY", "L_LINENUMBER"));
-- once
COMMENT ON TABLE "LINEITEM" IS 'made by terapush';
-- per row
INSERT INTO "LINEITEM" ("L_ORDERKEY", "L_PARTKEY", "L_SUPPKEY", "L_LINENUMBER", "L_QUANTITY", "L_EXTENDEDPRICE", "L_DISCOUNT", "L_TAX", "L_RETURNFLAG", "L_LINESTATUS", "L_SHIPDATE", "L_COMMITDATE", "L_RECEIPTDATE", "L_SHIPINSTRUCT", "L_SHIPMODE", "L_COMMENT") VALUES (:1, :2, :3, :4, :5 / 100, :6 / 100, :7 / 100, :8 / 100, :9, :10, :11, :12, :13, :14, :15, :16);
-- per row
COMMIT;
-- when a session ends
SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# WHERE n.name IN ('redo size', 'SQL*Net roundtrips to/from client', 'bytes received via SQL*Net from client', 'CPU used by this session', 'user commits');
-- to verify
SELECT TO_CHAR(bucket), TO_CHAR(COUNT(*)), TO_CHAR(MIN(o)), TO_CHAR(MAX(o)), TO_CHAR(SUM(o)), TO_CHAR(SUM(o * o)) FROM (SELECT TRUNC((("L_ORDERKEY" - 1) * 4 + ("L_LINENUMBER" - 1) - 0) / 3000) AS bucket, MOD((("L_ORDERKEY" - 1) * 4 + ("L_LINENUMBER" - 1) - 0), 3000) AS o FROM "LINEITEM" WHERE "L_ORDERKEY" BETWEEN 1 AND 750 AND ("L_ORDERKEY" - 1) * 4 + ("L_LINENUMBER" - 1) BETWEEN 0 AND 2999) t GROUP BY bucket;
