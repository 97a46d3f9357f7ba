package oracle_test

import (
	"context"
	"database/sql"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/oracle"
)

// start starts a server that ends with the test.
func start(t *testing.T, o oracle.Options) *oracle.Server {
	t.Helper()
	s, err := oracle.Start(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// connect is one connection.
func connect(t *testing.T, s *oracle.Server) *sql.Conn {
	t.Helper()
	db := sql.OpenDB(s.Connector(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Address())
	}))
	t.Cleanup(func() { _ = db.Close() })
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	return c
}

func exec(t *testing.T, c *sql.Conn, text string, args ...any) int64 {
	t.Helper()
	r, err := c.ExecContext(t.Context(), text, args...)
	require.NoError(t, err, text)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	return n
}

// fails is a statement that the server refuses.
func fails(t *testing.T, c *sql.Conn, code int, text string, args ...any) string {
	t.Helper()
	_, err := c.ExecContext(t.Context(), text, args...)
	return refused(t, code, err)
}

func refused(t *testing.T, code int, err error) string {
	t.Helper()
	said := (*oracle.Error)(nil)
	require.ErrorAs(t, err, &said)
	require.Equal(t, code, said.Code, said.Text)
	return said.Text
}

// ask reads rows as texts; "-" is a NULL.
func ask(t *testing.T, c *sql.Conn, text string, args ...any) (all [][]string) {
	t.Helper()
	rows, err := c.QueryContext(t.Context(), text, args...)
	require.NoError(t, err, text)
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		to := make([]any, len(names))
		row := make([]sql.NullString, len(names))
		for i := range row {
			to[i] = &row[i]
		}
		require.NoError(t, rows.Scan(to...))
		var line []string
		for _, v := range row {
			if !v.Valid {
				v.String = "-"
			}
			line = append(line, v.String)
		}
		all = append(all, line)
	}
	require.NoError(t, rows.Err())
	return all
}

func one(t *testing.T, c *sql.Conn, text string, args ...any) string {
	t.Helper()
	rows := ask(t, c, text, args...)
	require.Len(t, rows, 1, text)
	require.Len(t, rows[0], 1, text)
	return rows[0][0]
}

const things = `CREATE TABLE "THINGS" ("ID" NUMBER(19) NOT NULL, "NAME" VARCHAR2(5 BYTE), "RAW" RAW(4), "DAY" DATE, "AT" TIMESTAMP(6), ` +
	`"DOC" VARCHAR2(100) CHECK ("DOC" IS JSON), PRIMARY KEY ("ID"))`

func TestExpressions(t *testing.T) {
	c := connect(t, start(t, oracle.Options{}))
	for text, want := range map[string]string{
		"TO_CHAR(9007199254740993 * 9007199254740993)":                               "81129638414606699710187514626049",
		"TO_CHAR(TRUNC(-7 / 2)) || ',' || TO_CHAR(MOD(7, 3)) || ',' || TO_CHAR(1/4)": "-3,1,.25",
		"'' || NULL":                     "-",
		"NVL('', 'null')":                "null",
		"DECODE(2, 1, 'a', 2, 'b', 'c')": "b",
		"CASE WHEN 1 = 2 THEN 'x' WHEN 'A' LIKE '_' THEN 'y' END":                                          "y",
		"TO_CHAR(TO_TIMESTAMP('2024-02-29 23:59:59.000001', 'YYYY-MM-DD HH24:MI:SS.FF6'), 'YYYYMMDD.FF6')": "20240229.000001",
		"TO_CHAR(DATE '1970-01-02' - DATE '1970-01-01')":                                                   "1",
		"TO_CHAR(DATE '1970-01-01' + 3, 'YYYY-MM-DD')":                                                     "1970-01-04",
		"TO_CHAR(GREATEST((SELECT COUNT(*) FROM DUAL), 5))":                                                "5",
		"RAWTOHEX(HEXTORAW('00ff'))":                                                                       "00FF",
		"json_object('a' value 'x', 'b' VALUE 1)":                                                          `{"a":"x","b":1}`,
		"CASE WHEN 'A_B' LIKE 'A\\_%' ESCAPE '\\' THEN 1 ELSE 0 END":                                       "1",
		"USER": "TERA",
		"TO_CHAR(EXTRACT(DAY FROM (TIMESTAMP '2026-01-02 03:04:05.000006' - TIMESTAMP '2025-12-31 00:00:00')))":    "2",
		"TO_CHAR(EXTRACT(HOUR FROM (TIMESTAMP '2026-01-02 03:04:05.000006' - TIMESTAMP '1970-01-01 00:00:00')))":   "3",
		"TO_CHAR(EXTRACT(MINUTE FROM (TIMESTAMP '2026-01-02 03:04:05.000006' - TIMESTAMP '1970-01-01 00:00:00')))": "4",
		"TO_CHAR(EXTRACT(SECOND FROM (TIMESTAMP '2026-01-02 03:04:05.000006' - TIMESTAMP '1970-01-01 00:00:00')))": "5.000006",
		"TO_CHAR(EXTRACT(DAY FROM (TIMESTAMP '1969-12-30 23:59:58.5' - TIMESTAMP '1970-01-01 00:00:00')))":         "-1",
		"TO_CHAR(EXTRACT(SECOND FROM (TIMESTAMP '1969-12-30 23:59:58.5' - TIMESTAMP '1970-01-01 00:00:00')))":      "-1.5",
		"TO_CHAR(EXTRACT(SECOND FROM (TIMESTAMP '1970-01-01 00:00:01.25' - TIMESTAMP '1970-01-01 00:00:00.75')))":  ".5",
		"TO_CHAR(EXTRACT(DAY FROM (TIMESTAMP '9999-12-31 00:00:00' - TIMESTAMP '0001-01-01 00:00:00')))":           "3652058",
		"TO_CHAR(TIMESTAMP '1970-01-02 00:00:01' - TIMESTAMP '1970-01-01 00:00:00')":                               "+000000001 00:00:01.000000000",
		"TO_CHAR(-1/2, 'TM9') || ' ' || TO_CHAR(3/2)":                                                              "-.5 1.5",
		"TO_CHAR(999999999999999999 / 1000)":                                                                             "999999999999999.999",
		"TO_CHAR(TO_NUMBER('-12.50', '999D99', 'NLS_NUMERIC_CHARACTERS=''.,''') * 2)":                                    "-25",
		"CASE WHEN TIMESTAMP '2026-01-02 03:04:05.000006' IN (TIMESTAMP '2026-01-02 03:04:05.000007') THEN 1 ELSE 0 END": "0",
	} {
		assert.Equal(t, want, one(t, c, "SELECT "+text+" FROM DUAL"), text)
	}
	for text, code := range map[string]int{
		"SELECT nothing FROM DUAL":        904,
		"SELECT 1 FROM nothing":           942,
		"SELECT 1 FROM DUAL;":             900,
		"SELECT 1":                        900,
		"SELECT TO_NUMBER('x') FROM DUAL": 1722,
		"SELECT EXTRACT(DAY FROM DATE '2026-01-01') FROM DUAL": 30076,
		"SELECT TO_NUMBER('1234.5', '999D99') FROM DUAL":       1722,
		"SELECT TO_NUMBER('1.555', '999D99') FROM DUAL":        1722,
		"SELECT TO_NUMBER('1.5', '$9') FROM DUAL":              1481,
		"SELECT TO_CHAR(1.5, 'TM9', 'x') FROM DUAL":            12702,
		"SELECT 1/0 FROM DUAL":                                 1476,
		"SELECT TO_DATE('x', 'YYYY-MM-DD') FROM DUAL":          1858,
		"SELECT TO_DATE('x', 'YYYY-QQ') FROM DUAL":             1821,
		"SELECT UNHEARD(1) FROM DUAL":                          904,
		"SELECT (SELECT 1, 2 FROM DUAL) FROM DUAL":             913,
		"MERGE INTO things USING DUAL":                         900,
		"ALTER SESSION SET unheard_of = 1":                     2248,
		"BEGIN DBMS_UNHEARD.OF; END;":                          6550,
		"SELECT :1 FROM DUAL":                                  1008,
	} {
		fails(t, c, code, text)
	}
}

// A client from where numbers have commas sees commas, unless it says otherwise.
func TestDecimalPoints(t *testing.T) {
	c := connect(t, start(t, oracle.Options{NumericCharacters: ",."}))
	assert.Equal(t, "1,5", one(t, c, "SELECT TO_CHAR(3/2) FROM DUAL"))
	assert.Equal(t, "1,5", one(t, c, "SELECT TO_CHAR(3/2, 'TM9') FROM DUAL"))
	assert.Equal(t, "1.5", one(t, c, "SELECT TO_CHAR(3/2, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''') FROM DUAL"))
	assert.Equal(t, "3", one(t, c, "SELECT TO_CHAR(2 * TO_NUMBER('1,5')) FROM DUAL"))
	assert.Equal(t, "3", one(t, c, "SELECT TO_CHAR(2 * TO_NUMBER('1.5', '9D9', 'NLS_NUMERIC_CHARACTERS=''.,''')) FROM DUAL"))
	fails(t, c, 1722, "SELECT TO_NUMBER('1.5') FROM DUAL")
	exec(t, c, "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'")
	assert.Equal(t, "1.5", one(t, c, "SELECT TO_CHAR(TO_NUMBER('1.5')) FROM DUAL"))
}

// Times are told apart by more than their day.
func TestTimesInListsAndSets(t *testing.T) {
	c := connect(t, start(t, oracle.Options{}))
	exec(t, c, things)
	exec(t, c, `INSERT INTO things (id, "AT") VALUES (:1, :2)`, []int64{1, 2, 3},
		[]time.Time{time.UnixMicro(1_000_001), time.UnixMicro(1_000_002).UTC(), time.UnixMicro(1_000_002).UTC()})
	assert.Equal(t, "2", one(t, c, `SELECT TO_CHAR(COUNT(*)) FROM things WHERE "AT" IN (TIMESTAMP '1970-01-01 00:00:01.000002', TIMESTAMP '1970-01-01 00:00:02')`))
	assert.Equal(t, "2", one(t, c, `SELECT TO_CHAR(COUNT(DISTINCT "AT")) FROM things`))
	fails(t, c, 932, `SELECT 1 FROM things WHERE "AT" IN ('1970-01-01')`)
}

func TestTruncate(t *testing.T) {
	c := connect(t, start(t, oracle.Options{Denied: map[string]int{"TRUNCATE TABLE": 1031}}))
	exec(t, c, things)
	exec(t, c, "INSERT INTO things (id) VALUES (1)")
	fails(t, c, 1031, "TRUNCATE TABLE things")
	fails(t, c, 1031, "TRUNCATE TABLE nothing")
	assert.Equal(t, "1", one(t, c, "SELECT TO_CHAR(COUNT(*)) FROM things"))

	s := start(t, oracle.Options{})
	c = connect(t, s)
	exec(t, c, things)
	tx, err := connect(t, s).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO things (id) VALUES (1)")
	require.NoError(t, err)
	fails(t, c, 54, "TRUNCATE TABLE things")
	require.NoError(t, tx.Commit())
	exec(t, c, "TRUNCATE TABLE things")
	exec(t, c, "INSERT INTO things (id) VALUES (1)")
	fails(t, c, 1, "INSERT INTO things (id) VALUES (1)")
}

// What the drivers reshape comes back reshaped: whoever scans it into what it was is told, or is wrong in a test.
func TestValuesWithoutToChar(t *testing.T) {
	c := connect(t, start(t, oracle.Options{}))
	var n int64
	require.Error(t, c.QueryRowContext(t.Context(), "SELECT 10000000 * 10000000 * 1000000000 FROM DUAL").Scan(&n))
	var at time.Time
	require.NoError(t, c.QueryRowContext(t.Context(), "SELECT DATE '2024-01-01' FROM DUAL").Scan(&at))
	assert.NotEqual(t, time.UTC, at.Location())
}

func TestQueries(t *testing.T) {
	c := connect(t, start(t, oracle.Options{}))
	exec(t, c, things)
	for i, name := range []string{"a", "b", "a", ""} {
		exec(t, c, `INSERT INTO things (id, name) VALUES (:1, :2)`, i, name)
	}
	assert.Equal(t, [][]string{{"a", "2", "2"}, {"b", "1", "1"}, {"-", "1", "3"}},
		ask(t, c, "SELECT name, TO_CHAR(COUNT(*)), TO_CHAR(MAX(id)) FROM things GROUP BY name ORDER BY MIN(id)"))
	assert.Equal(t, [][]string{{"a"}, {"-"}}, ask(t, c, `SELECT name FROM things t WHERE "ID" BETWEEN 2 AND 9 ORDER BY id`))
	assert.Equal(t, "2", one(t, c, "SELECT TO_CHAR(COUNT(DISTINCT name)) FROM things"))
	assert.Equal(t, "1", one(t, c, "SELECT TO_CHAR(COUNT(*)) FROM things WHERE ROWNUM = 1"))
	assert.Equal(t, "1", one(t, c, "SELECT TO_CHAR(COUNT(*)) FROM things WHERE name IS NULL"), "'' is NULL")
	assert.Equal(t, "0", one(t, c, "SELECT TO_CHAR(COUNT(*)) FROM things WHERE NOT name = NULL"))
	assert.Equal(t, "-", one(t, c, "SELECT SUM(id) FROM things WHERE 1 = 2"))
	assert.Equal(t, "a, a, b", one(t, c, "SELECT LISTAGG(name, ', ') WITHIN GROUP (ORDER BY name) FROM things"))
	assert.Equal(t, [][]string{{"1", "b"}}, ask(t, c, "SELECT TO_CHAR(x.id), y.name FROM things x JOIN (SELECT id, name FROM things) y ON x.id = y.id WHERE y.name = 'b'"))
	assert.Equal(t, [][]string{{"0"}, {"2"}}, ask(t, c, "SELECT TO_CHAR(id) FROM things t WHERE EXISTS (SELECT 1 FROM things u WHERE u.name = t.name AND u.id <> t.id) ORDER BY 1"))
	assert.Equal(t, [][]string{{"3"}, {"2"}}, ask(t, c, "SELECT TO_CHAR(id) FROM things ORDER BY id DESC FETCH FIRST 2 ROWS ONLY"))
	assert.Equal(t, [][]string{{"0"}, {"1"}}, ask(t, c, "SELECT '0' FROM DUAL UNION ALL SELECT '1' FROM DUAL"))
	list := "0"
	for range 1000 {
		list += ",0"
	}
	fails(t, c, 1795, "DELETE FROM things WHERE id IN ("+list+")")
	assert.EqualValues(t, 4, exec(t, c, "DELETE FROM things WHERE (id IN (0, 1) OR id IN (SELECT id FROM things))"))
}

func TestConstraints(t *testing.T) {
	c := connect(t, start(t, oracle.Options{}))
	exec(t, c, things)
	at := time.Date(2024, 2, 29, 1, 2, 3, 4000, time.UTC)
	exec(t, c, "INSERT INTO things VALUES (:1, :2, :3, :4, :5, :6)", 1, "äa", []byte{0, 255}, at, at, `{"a": 1}`)
	assert.Equal(t, [][]string{{"äa", "00FF", "2024-02-29 01:02:03", "03.000004", `{"a": 1}`}},
		ask(t, c, `SELECT name, RAWTOHEX("RAW"), TO_CHAR("DAY", 'YYYY-MM-DD HH24:MI:SS'), TO_CHAR("AT", 'SS.FF6'), doc FROM things`))
	for text, code := range map[string]int{
		"INSERT INTO things (id) VALUES (1)":                                1,
		"INSERT INTO things (name) VALUES ('x')":                            1400,
		"INSERT INTO things (id, name) VALUES (2, 'äöü')":                   12899,
		`INSERT INTO things (id, "RAW") VALUES (2, HEXTORAW('0011223344'))`: 12899,
		"INSERT INTO things (id, doc) VALUES (2, '{')":                      2290,
		"INSERT INTO things (id) VALUES (10000000000000000000)":             1438,
		"INSERT INTO things (id, name) VALUES (2)":                          947,
		"INSERT INTO things (id) VALUES (2, 3)":                             913,
		"INSERT INTO things (id) VALUES ('2.0')":                            1722,
		"INSERT INTO things (id, unheard) VALUES (2, 3)":                    904,
		`INSERT INTO things (id, "DAY") VALUES (2, '2024-01-01')`:           1861,
		"CREATE TABLE things (id NUMBER)":                                   955,
		"CREATE TABLE long (v VARCHAR2(32768))":                             910,
	} {
		fails(t, c, code, text)
	}
	assert.Equal(t, "1", one(t, c, "SELECT TO_CHAR(COUNT(*)) FROM things"))

	standard := connect(t, start(t, oracle.Options{Standard: true}))
	fails(t, standard, 910, "CREATE TABLE long (v VARCHAR2(4001))")
	fails(t, standard, 910, "CREATE TABLE long (v RAW(2001))")
}

func TestArrays(t *testing.T) {
	insert := "INSERT INTO things (id, name) VALUES (:1, :2)"
	for _, batchErrors := range []bool{false, true} {
		s := start(t, oracle.Options{BatchErrors: batchErrors})
		c := connect(t, s)
		exec(t, c, things)
		assert.EqualValues(t, 3, exec(t, c, insert, []int64{1, 2, 3}, []string{"a", "", "c"}))
		tx, err := c.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		code, left := 12899, 1
		if batchErrors {
			code, left = 24381, 2
		}
		_, err = tx.Exec(insert, []int64{4, 5, 6}, []string{"a", "too long", "c"})
		refused(t, code, err)
		assert.Equal(t, 3, s.Rows("THINGS"), "nothing is committed")
		require.NoError(t, tx.Commit())
		assert.Equal(t, 3+left, s.Rows("THINGS"), "what went in before, or all good rows, stay in the transaction")
		for _, args := range [][]any{
			{[]int64{7, 8}, []string{"a"}}, {[]int64{7}, "a"}, {[]int64{}, []string{}}, {7.5, "a"}, {[]any{1}, []any{"a"}},
		} {
			_, err := c.ExecContext(t.Context(), insert, args...)
			require.ErrorContains(t, err, "stand-in", "%v", args)
		}
	}
}

func TestTransactions(t *testing.T) {
	s := start(t, oracle.Options{})
	a, b := connect(t, s), connect(t, s)
	exec(t, a, things)
	tx, err := a.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO things (id) VALUES (1)")
	require.NoError(t, err)
	assert.Equal(t, "0", one(t, b, "SELECT TO_CHAR(COUNT(*)) FROM things"))
	assert.Equal(t, "1", one(t, a, "SELECT TO_CHAR(COUNT(*)) FROM things"))
	require.NoError(t, tx.Rollback())
	assert.Equal(t, "0", one(t, a, "SELECT TO_CHAR(COUNT(*)) FROM things"))
	exec(t, a, "INSERT INTO things (id) VALUES (1)") // without a transaction of its own
	assert.Equal(t, 1, s.Rows("THINGS"))

	tx, err = a.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("DELETE FROM things")
	require.NoError(t, err)
	assert.Equal(t, "1", one(t, b, "SELECT TO_CHAR(COUNT(*)) FROM things"))
	_, err = tx.Exec("TRUNCATE TABLE things") // commits
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	assert.Equal(t, 0, s.Rows("THINGS"))
	assert.Zero(t, s.Open())

	var kinds []string
	for _, st := range s.Log() {
		if st.Session == 1 && st.Explicit || st.Kind == oracle.Begin {
			kinds = append(kinds, st.Kind)
		}
	}
	assert.Equal(t, []string{"BEGIN", "SQL", "SQL", "ROLLBACK", "BEGIN", "SQL", "SQL", "ROLLBACK"}, kinds[:8], "%v", kinds)
}

func TestFastIngest(t *testing.T) {
	const table = "CREATE TABLE t (id NUMBER(19) NOT NULL, PRIMARY KEY (id)) SEGMENT CREATION IMMEDIATE NOCOMPRESS MEMOPTIMIZE FOR WRITE"
	const insert = "INSERT /*+ MEMOPTIMIZE_WRITE */ INTO t (id) VALUES (:1)"
	const written = "SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_WRITE_HWM_SEQID) FROM DUAL"
	const applied = "SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_APPLY_HWM_SEQID()) FROM DUAL"
	s := start(t, oracle.Options{DrainRows: 2})
	c := connect(t, s)
	exec(t, c, table)
	assert.Equal(t, "0", one(t, c, written))
	tx, err := c.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec(insert, []int64{1, 2, 3, 3, 4})
	require.NoError(t, err, "nobody checks keys")
	require.NoError(t, tx.Rollback(), "and there is nothing to roll back")
	assert.Equal(t, "5", one(t, c, written))
	assert.Zero(t, s.Rows("T"))
	assert.Equal(t, "2", one(t, c, applied))
	assert.Equal(t, 2, s.Rows("T"))
	exec(t, c, "BEGIN DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; END;")
	assert.Equal(t, "5", one(t, c, applied))
	assert.Equal(t, 4, s.Rows("T"), "the row with the taken key is lost without a word")
	var n int64
	exec(t, c, "BEGIN :1 := DBMS_MEMOPTIMIZE.GET_APPLY_HWM_SEQID(); END;", sql.Out{Dest: &n})
	assert.EqualValues(t, 5, n)

	exec(t, c, insert, 9)
	s.Crash()
	assert.Equal(t, 4, s.Rows("T"))
	_, err = c.ExecContext(t.Context(), insert, 9)
	require.Error(t, err)
	after := connect(t, s)
	assert.Equal(t, "6", one(t, after, applied))

	for name, o := range map[string]oracle.Options{"hints are ignored": {IgnoreHints: true}, "not to be had": {NoFastIngest: true}} {
		s := start(t, o)
		c := connect(t, s)
		exec(t, c, table)
		exec(t, c, insert, 1)
		assert.Equal(t, 1, s.Rows("T"), name)
		assert.Equal(t, "0", one(t, c, written), name)
	}
}

func TestDictionary(t *testing.T) {
	s := start(t, oracle.Options{Denied: map[string]int{"V$PARAMETER": 942, "DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH": 6550, "CREATE TABLE": 1031}})
	c := connect(t, s)
	fails(t, c, 1031, things)
	fails(t, c, 942, "SELECT value FROM v$parameter")
	fails(t, c, 6550, "BEGIN DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; END;")

	c = connect(t, start(t, oracle.Options{}))
	exec(t, c, things)
	exec(t, c, "COMMENT ON TABLE things IS 'made here'")
	const identity = "SELECT TO_CHAR(object_id), TO_CHAR(data_object_id) FROM all_objects WHERE owner = USER AND object_name = 'THINGS'"
	before := ask(t, c, identity)
	exec(t, c, "TRUNCATE TABLE things")
	after := ask(t, c, identity)
	assert.Equal(t, before[0][0], after[0][0])
	assert.NotEqual(t, before[0][1], after[0][1])
	assert.Equal(t, "made here", one(t, c, "SELECT comments FROM user_tab_comments WHERE table_name = 'THINGS'"))
	assert.Equal(t, [][]string{{"ID", "NUMBER", "19", "N"}, {"NAME", "VARCHAR2", "-", "Y"}},
		ask(t, c, "SELECT column_name, data_type, TO_CHAR(data_precision), nullable FROM all_tab_columns WHERE table_name = 'THINGS' AND column_id < 3 ORDER BY column_id"))
	assert.Equal(t, "1", one(t, c, "SELECT TO_CHAR(COUNT(*)) FROM all_indexes i JOIN all_ind_columns c ON c.index_owner = i.owner AND c.index_name = i.index_name "+
		"WHERE i.uniqueness = 'UNIQUE' AND c.column_name = 'ID'"))
	assert.Equal(t, "AL32UTF8", one(t, c, "SELECT value FROM nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET'"))
	assert.Equal(t, [][]string{{"user commits", "0"}}, ask(t, c, "SELECT n.name, TO_CHAR(m.value) FROM v$mystat m JOIN v$statname n ON n.statistic# = m.statistic# WHERE n.name = 'user commits'"))
	exec(t, c, "INSERT INTO things (id) VALUES (1)")
	assert.Equal(t, "1", one(t, c, "SELECT TO_CHAR(m.value) FROM v$mystat m JOIN v$statname n USING (statistic#) WHERE n.name = 'user commits'"))
	assert.NotEqual(t, "0", one(t, c, "SELECT TO_CHAR(SUM(bytes)) FROM user_segments WHERE segment_name = 'THINGS'"))
}

func TestExternalTables(t *testing.T) {
	objects := map[string]string{"https://b/1": "1,2024-01-01,\"a\"\"b\"\n", "https://b/2": "2,,\n", "https://b/bad": "x,,\n"}
	s := start(t, oracle.Options{Objects: func(uri string) ([]byte, error) {
		if text, found := objects[uri]; found {
			return []byte(text), nil
		}
		return nil, net.ErrClosed
	}})
	c := connect(t, s)
	exec(t, c, `CREATE TABLE t (id NUMBER(19), "DAY" DATE, name VARCHAR2(10))`)
	create := func(name, uris string) {
		exec(t, c, `BEGIN DBMS_CLOUD.CREATE_EXTERNAL_TABLE(table_name => '`+name+`', credential_name => 'C', file_uri_list => '`+uris+`', `+
			`column_list => '"ID" NUMBER(19), "DAY" DATE, "NAME" VARCHAR2(10)', `+
			`field_list => '"ID" CHAR(20), "DAY" CHAR(10) DATE_FORMAT DATE MASK "YYYY-MM-DD", "NAME" CHAR(22)', `+
			`format => json_object('type' value 'csv without embedded', 'rejectlimit' value '0')); END;`)
	}
	create("EXT", "https://b/1,https://b/2")
	assert.EqualValues(t, 2, exec(t, c, "INSERT /*+ APPEND */ INTO t SELECT * FROM ext"))
	assert.Equal(t, [][]string{{"1", "2024-01-01", `a"b`}, {"2", "-", "-"}}, ask(t, c, `SELECT TO_CHAR(id), TO_CHAR("DAY", 'YYYY-MM-DD'), name FROM t ORDER BY id`))
	create("BAD", "https://b/1,https://b/bad")
	fails(t, c, 30653, "INSERT INTO t SELECT * FROM bad")
	create("GONE", "https://b/3")
	fails(t, c, 29913, "INSERT INTO t SELECT * FROM gone")
	assert.Equal(t, 2, s.Rows("T"))
	assert.Equal(t, "3", one(t, c, "SELECT TO_CHAR(COUNT(*)) FROM all_external_tables"))
	exec(t, c, "DROP TABLE ext")
	fails(t, c, 942, "SELECT 1 FROM ext")
}
