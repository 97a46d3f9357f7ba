package oracle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// journal is like the dataset of this name, and every has a column of each type.
func journal() rows.Schema {
	return rows.Schema{
		Dataset: "journal",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Text, MaxBytes: 20, Declared: 40, Derived: true, Plain: true},
			{Name: "ts", Type: rows.Timestamp, Derived: true},
			{Name: "payload", Type: rows.Text, MaxBytes: 1400, Declared: 4000, JSON: true},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

func every() rows.Schema {
	return rows.Schema{
		Dataset: "every",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "body", Type: rows.Bytes, MaxBytes: 2000},
			{Name: "name", Type: rows.Text, MaxBytes: 50, Plain: true},
			{Name: "day", Type: rows.Date},
			{Name: "at", Type: rows.Timestamp},
			{Name: "price", Type: rows.Decimal, Digits: 15, Scale: 2},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

func TestTableStatements(t *testing.T) {
	array := statementsFor("u.Every", every(), methodArray, options{})
	keyed := array
	keyed.primaryKey = true
	fast := statementsFor("", journal(), methodFast, options{})
	fast.Table = `"JOURNAL"`
	direct := statementsFor("j", journal(), methodDirect, options{partition: "p1"})
	ref := loader.Ref{First: 30, Rows: 4}
	for want, got := range map[string]string{
		`CREATE TABLE "U"."EVERY" ("ID" NUMBER(19) NOT NULL, "BODY" RAW(2000), "NAME" VARCHAR2(50 BYTE), "DAY" DATE NOT NULL, ` +
			`"AT" TIMESTAMP(6) NOT NULL, "PRICE" NUMBER(15,2) NOT NULL)`: array.createTable(),
		`CREATE TABLE "U"."EVERY" ("ID" NUMBER(19) NOT NULL, "BODY" RAW(2000), "NAME" VARCHAR2(50 BYTE), "DAY" DATE NOT NULL, ` +
			`"AT" TIMESTAMP(6) NOT NULL, "PRICE" NUMBER(15,2) NOT NULL, PRIMARY KEY ("ID"))`: keyed.createTable(),
		`CREATE TABLE "JOURNAL" ("ID" VARCHAR2(40 BYTE) NOT NULL, "TS" TIMESTAMP(6) NOT NULL, ` +
			`"PAYLOAD" VARCHAR2(4000 BYTE) CHECK ("PAYLOAD" IS JSON)) SEGMENT CREATION IMMEDIATE NOCOMPRESS MEMOPTIMIZE FOR WRITE`: fast.createTable(),
		`COMMENT ON TABLE "U"."EVERY" IS 'made by terapush'`: array.markTable(),
		`DROP TABLE "U"."EVERY" PURGE`:                       array.dropTable(),
		`CREATE TABLE "U"."TERAPUSH_CLAIMS" (run VARCHAR2(64) NOT NULL, batch NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, ` +
			`row_count NUMBER(19) NOT NULL, PRIMARY KEY (run, batch)) NOCOMPRESS`: array.createClaims(),
		`INSERT INTO "U"."TERAPUSH_CLAIMS" (run, batch, first_key, row_count) VALUES (:1, :2, :3, :4)`:               array.claim(),
		`INSERT INTO "U"."EVERY" ("ID", "BODY", "NAME", "DAY", "AT", "PRICE") VALUES (:1, :2, :3, :4, :5, :6 / 100)`: array.insert(),
		`TRUNCATE TABLE "U"."EVERY"`: array.truncateTable(),
		`INSERT /*+ MEMOPTIMIZE_WRITE */ INTO "JOURNAL" ("ID", "TS", "PAYLOAD") VALUES (:1, :2, :3)`:                     fast.insert(),
		`INSERT /*+ APPEND_VALUES */ INTO "J" PARTITION ("P1") ("ID", "TS", "PAYLOAD") VALUES (:1, :2, :3)`:              direct.insert(),
		`LOCK TABLE "U"."EVERY" IN SHARE MODE WAIT 45`:                                                                   array.lockTable(),
		`LOCK TABLE "TERAPUSH_CLAIMS" IN EXCLUSIVE MODE WAIT 45`:                                                         direct.lockClaims(),
		`SELECT TO_CHAR(COUNT(*)), TO_CHAR(MIN("ID")), TO_CHAR(MAX("ID")) FROM "U"."EVERY" WHERE "ID" BETWEEN 30 AND 33`: array.selectBatch(ref),
		`SELECT TO_CHAR("ID"), TO_CHAR("ID"), "BODY", "NAME", TO_CHAR("DAY", 'YYYY-MM-DD HH24:MI:SS'), TO_CHAR("AT", 'YYYY-MM-DD HH24:MI:SS.FF6'), ` +
			`TO_CHAR("PRICE", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''') FROM "U"."EVERY" WHERE "ID" IN (7)`: array.SelectRows([]int64{7}),
	} {
		assert.Equal(t, want, got)
	}
}

func TestListsHaveAThousandElements(t *testing.T) {
	numbers := make([]int64, 2001)
	text := statementsFor("t", every(), methodArray, options{}).SelectRows(numbers)
	assert.Equal(t, 3, strings.Count(text, `"ID" IN (`))
	assert.Equal(t, 2, strings.Count(text, ") OR "))
	assert.Contains(t, text, `WHERE ("ID" IN (0,`)
}

func TestSessionSetup(t *testing.T) {
	set := []loader.Setting{{Name: "commit_wait", Value: "NOWAIT"}}
	for method, want := range map[string][]string{
		methodArray:     {"ALTER SESSION SET commit_wait = NOWAIT"},
		methodSingle:    {"ALTER SESSION SET commit_wait = NOWAIT"},
		methodFast:      {"ALTER SESSION SET commit_wait = NOWAIT", useHints},
		methodDirect:    {"ALTER SESSION SET commit_wait = NOWAIT", useHints},
		methodCloudCopy: {"ALTER SESSION SET commit_wait = NOWAIT", useHints},
	} {
		assert.Equal(t, want, statementsFor("t", every(), method, options{}).sessionSetup(set), method)
	}
}

func TestUnquotedUndoesQualified(t *testing.T) {
	for _, c := range [][2]string{{"", "T"}, {"S", "T"}, {"S.X", "T.Y"}} {
		schema, name := unquoted(qualified(c[0], c[1]))
		if c[0] == "" {
			assert.Equal(t, [2]string{"", "T"}, [2]string{schema, name})
			continue
		}
		assert.Equal(t, c, [2]string{schema, name})
	}
}

func TestDifferences(t *testing.T) {
	fitting := func() [][]string {
		return [][]string{ // name, type, bytes, precision, scale, nullable, length of the default
			{"ID", "NUMBER", "22", "19", "0", "N", ""},
			{"BODY", "RAW", "2000", "", "", "Y", ""},
			{"NAME", "VARCHAR2", "50", "", "", "Y", ""},
			{"DAY", "DATE", "7", "", "", "N", ""},
			{"AT", "TIMESTAMP(6)", "11", "", "6", "N", ""},
			{"PRICE", "NUMBER", "22", "15", "2", "N", ""},
		}
	}
	for name, c := range map[string]struct {
		row    int
		column []string
		want   string
	}{
		"as made":              {0, fitting()[0], ""},
		"a wider number":       {0, []string{"ID", "NUMBER", "22", "38", "0", "N", ""}, ""},
		"any number":           {0, []string{"ID", "NUMBER", "22", "", "", "N", ""}, ""},
		"an integer":           {0, []string{"ID", "NUMBER", "22", "", "0", "N", ""}, ""},
		"a short number":       {0, []string{"ID", "NUMBER", "22", "10", "0", "N", ""}, "column ID is NUMBER(10,0), and the dataset needs NUMBER(19)"},
		"tens":                 {0, []string{"ID", "NUMBER", "22", "25", "-1", "N", ""}, "column ID is NUMBER(25,-1), and the dataset needs NUMBER(19)"},
		"any tens":             {0, []string{"ID", "NUMBER", "22", "", "-2", "N", ""}, "column ID is NUMBER(*,-2), and the dataset needs NUMBER(19)"},
		"nothing but decimals": {0, []string{"ID", "NUMBER", "22", "", "30", "N", ""}, "column ID is NUMBER(*,30), and the dataset needs NUMBER(19)"},
		"decimals":             {0, []string{"ID", "NUMBER", "22", "20", "2", "N", ""}, "column ID is NUMBER(20,2), and the dataset needs NUMBER(19)"},
		"a float":              {0, []string{"ID", "BINARY_DOUBLE", "8", "", "", "N", ""}, "column ID is BINARY_DOUBLE, and the dataset needs NUMBER(19)"},
		"a longer text":        {2, []string{"NAME", "VARCHAR2", "4000", "", "", "Y", ""}, ""},
		"a shorter text":       {2, []string{"NAME", "VARCHAR2", "49", "", "", "Y", ""}, "column NAME is VARCHAR2(49 BYTE), and the dataset needs VARCHAR2(50 BYTE)"},
		"a padded text":        {2, []string{"NAME", "CHAR", "50", "", "", "Y", ""}, "column NAME is CHAR(50 BYTE), and the dataset needs VARCHAR2(50 BYTE)"},
		"a CLOB":               {2, []string{"NAME", "CLOB", "4000", "", "", "Y", ""}, "column NAME is CLOB, and the dataset needs VARCHAR2(50 BYTE)"},
		"short bytes":          {1, []string{"BODY", "RAW", "16", "", "", "Y", ""}, "column BODY is RAW(16), and the dataset needs RAW(2000)"},
		"a time for a date":    {3, []string{"DAY", "TIMESTAMP(6)", "11", "", "6", "N", ""}, "column DAY is TIMESTAMP(6), and the dataset needs DATE"},
		"nanoseconds":          {4, []string{"AT", "TIMESTAMP(9)", "11", "", "9", "N", ""}, ""},
		"milliseconds":         {4, []string{"AT", "TIMESTAMP(3)", "11", "", "3", "N", ""}, "column AT is TIMESTAMP(3), and the dataset needs TIMESTAMP(6)"},
		"a time zone":          {4, []string{"AT", "TIMESTAMP(6) WITH TIME ZONE", "13", "", "6", "N", ""}, "column AT is TIMESTAMP(6) WITH TIME ZONE, and the dataset needs TIMESTAMP(6)"},
		"more decimals":        {5, []string{"PRICE", "NUMBER", "22", "15", "3", "N", ""}, "column PRICE is NUMBER(15,3), and the dataset needs NUMBER(15,2)"},
		"more digits":          {5, []string{"PRICE", "NUMBER", "22", "38", "2", "N", ""}, "column PRICE is NUMBER(38,2), and the dataset needs NUMBER(15,2)"},
		"a price of any kind":  {5, []string{"PRICE", "NUMBER", "22", "", "", "N", ""}, "column PRICE is NUMBER, and the dataset needs NUMBER(15,2)"},
		"a binary price":       {5, []string{"PRICE", "BINARY_DOUBLE", "8", "", "", "N", ""}, "column PRICE is BINARY_DOUBLE, and the dataset needs NUMBER(15,2)"},
		"another name":         {2, []string{"TITLE", "VARCHAR2", "50", "", "", "Y", ""}, "column NAME VARCHAR2(50 BYTE) is missing"},
		"small letters":        {2, []string{"name", "VARCHAR2", "50", "", "", "Y", ""}, "column NAME VARCHAR2(50 BYTE) is missing"},
		"one more":             {-1, []string{"MORE", "NUMBER", "22", "", "", "Y", ""}, ""},
		"one more, defaulted":  {-1, []string{"MORE", "NUMBER", "22", "", "", "N", "1"}, ""},
		"one more, needed":     {-1, []string{"MORE", "NUMBER", "22", "", "", "N", ""}, "column MORE needs a value, which the dataset does not have"},
	} {
		t.Run(name, func(t *testing.T) {
			found := fitting()
			if c.row < 0 {
				found = append(found, c.column)
			} else {
				found[c.row] = c.column
			}
			assert.Equal(t, c.want, strings.Join(differences(every(), found), "; "))
		})
	}
	assert.Len(t, differences(every(), [][]string{{"X", "DATE", "7", "", "", "N", ""}}), 7, "all of them at once")
}

func TestUnfit(t *testing.T) {
	plain := func() []string { return []string{"N", "", "", "0", "0", "0", "ENABLED"} }
	with := func(i int, value string) []string {
		row := plain()
		row[i] = value
		return row
	}
	for name, c := range map[string]struct {
		row    []string
		always string // what every method says
		fast   string // what fast says
		direct string
	}{
		"a table":        {plain(), "", "", ""},
		"external":       {with(5, "1"), "external table", "external table", "external table"},
		"temporary":      {with(0, "Y"), "temporary", "temporary", "temporary"},
		"triggers":       {with(3, "2"), "", "enabled triggers", "enabled triggers"},
		"foreign keys":   {with(4, "1"), "", "enabled foreign keys", "enabled foreign keys"},
		"a cluster":      {with(2, "C"), "", "lies in a cluster", "lies in a cluster"},
		"an index":       {with(1, "IOT"), "", "organized as an index", "organized as an index"},
		"not for ingest": {with(6, "DISABLED"), "", "not made for Fast Ingest", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for method, want := range map[string]string{
				methodSingle: c.always, methodBatch: c.always, methodArray: c.always, methodCloudCopy: c.always, methodFast: c.fast, methodDirect: c.direct,
			} {
				row := c.row
				if method != methodFast { // which alone asks for the last
					row = row[:6]
				}
				reason, hint := statementsFor("t", every(), method, options{}).unfit(row)
				if want == "" {
					assert.Empty(t, reason, method)
					continue
				}
				assert.Contains(t, reason, want, method)
				assert.NotEmpty(t, hint, method)
			}
		})
	}
}

func TestCarries(t *testing.T) {
	s := every()
	require.NoError(t, carries(s))
	s.Columns[1].MaxBytes, s.Columns[2].Declared = 32768, 40000
	err := carries(s)
	require.Error(t, err)
	assert.ErrorContains(t, err, "column body have up to 32768 bytes")
	assert.ErrorContains(t, err, "column name have up to 40000 bytes")
	assert.ErrorContains(t, err, "--payload-bytes")
	assert.Equal(t, loader.No, backend{client: goClient()}.Classify(err).Applied)
}

func TestValueOf(t *testing.T) {
	for _, c := range []struct {
		kind rows.Type
		text string
		want any
	}{
		{rows.Int64, "-12", int64(-12)},
		{rows.Int64, "", nil},
		{rows.Text, "a", []byte("a")},
		{rows.Text, "", []byte{}},
		{rows.Bytes, "\x00\xff", []byte{0, 255}},
		{rows.Date, "1970-01-03 00:00:00", int64(2)},
		{rows.Date, "1969-12-31 00:00:00", int64(-1)},
		{rows.Date, "", nil},
		{rows.Timestamp, "1970-01-01 00:00:01.000002", int64(1_000_002)},
		{rows.Timestamp, "1969-12-31 23:59:59.999999", int64(-1)},
		{rows.Decimal, "9999999999999.99", int64(999_999_999_999_999)}, // as TO_CHAR with TM9 writes them
		{rows.Decimal, "1.5", int64(150)},
		{rows.Decimal, ".05", int64(5)},
		{rows.Decimal, "-.5", int64(-50)},
		{rows.Decimal, "0", int64(0)},
		{rows.Decimal, "", nil},
	} {
		got, err := valueOf(rows.Column{Type: c.kind, Digits: 15, Scale: 2}, c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, c.want, got, c.text)
	}
	for _, c := range []struct {
		kind       rows.Type
		text, says string
	}{
		{rows.Int64, "1.5", "invalid syntax"},
		{rows.Date, "1970-01-03 01:00:00", "has a time of day"},
		{rows.Timestamp, "01-JAN-70", "cannot parse"},
		{rows.Decimal, "1,5", "no decimal number"},
		{rows.Decimal, ".005", "more than 2 digits"},
		{rows.Decimal, "1E+20", "no decimal number"},
	} {
		_, err := valueOf(rows.Column{Type: c.kind, Digits: 15, Scale: 2}, c.text)
		assert.ErrorContains(t, err, c.says)
	}
}

func TestExternalTables(t *testing.T) {
	name := externalTable("r-1", 7)
	assert.Equal(t, "TERAPUSH_R_1_G000000000007", name)
	assert.True(t, isExternal(name, "r-1"))
	for _, other := range []string{"TERAPUSH_R_1_G7", "TERAPUSH_R_1_GOOD_G000000000007", "TERAPUSH_R_12_G000000000007", "TERAPUSH_R_1_G00000000000X"} {
		assert.False(t, isExternal(other, "r-1"), other)
	}
	assert.Equal(t, `SELECT t.table_name FROM all_external_tables t WHERE t.owner = SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') `+
		`AND t.table_name LIKE 'TERAPUSH\_R\_1\_G%' ESCAPE '\'`, selectExternals("r-1"))

	s := statementsFor("t", journal(), methodCloudCopy, options{credential: "it's"})
	assert.Equal(t, `BEGIN DBMS_CLOUD.CREATE_EXTERNAL_TABLE(table_name => 'X', credential_name => 'it''s', file_uri_list => 'https://a,https://b', `+
		`column_list => '"ID" VARCHAR2(40 BYTE), "TS" TIMESTAMP(6), "PAYLOAD" VARCHAR2(4000 BYTE)', `+
		`field_list => '"ID" CHAR(42), "TS" CHAR(26) DATE_FORMAT TIMESTAMP MASK "YYYY-MM-DD HH24:MI:SS.FF6", "PAYLOAD" CHAR(2802)', `+
		`format => '{"type":"csv with embedded","characterset":"AL32UTF8","trimspaces":"notrim","rejectlimit":"0"}'); END;`,
		s.createExternal("X", []string{"https://a", "https://b"}))
	assert.Equal(t, `INSERT /*+ APPEND */ INTO "T" ("ID", "TS", "PAYLOAD") SELECT "ID", "TS", "PAYLOAD" FROM X`, s.fromExternal("X"))

	public := statementsFor("t", rows.Schema{Columns: every().Columns[2:4]}, methodCloudCopy, options{}).createExternal("X", []string{"u"})
	assert.NotContains(t, public, "credential_name")
	assert.Contains(t, public, `"NAME" CHAR(102), "DAY" CHAR(10) DATE_FORMAT DATE MASK "YYYY-MM-DD"`)
	assert.Contains(t, public, "csv without embedded")
}

// Decimals are texts in an external table, whatever the session's decimal point is.
func TestExternalDecimals(t *testing.T) {
	price := rows.Schema{Columns: every().Columns[5:]}
	s := statementsFor("t", price, methodCloudCopy, options{})
	assert.Contains(t, s.createExternal("X", []string{"u"}), `column_list => '"PRICE" VARCHAR2(18 BYTE)', field_list => '"PRICE" CHAR(18)'`)
	assert.Equal(t, `INSERT /*+ APPEND */ INTO "T" ("PRICE") SELECT TO_NUMBER("PRICE", '9999999999999D99', 'NLS_NUMERIC_CHARACTERS=''.,''') FROM X`,
		s.fromExternal("X"))

	price.Columns[0].Digits, price.Columns[0].Scale = 2, 2 // -0.12
	s = statementsFor("t", price, methodCloudCopy, options{})
	assert.Contains(t, s.createExternal("X", []string{"u"}), `"PRICE" CHAR(5)`)
	assert.Contains(t, s.fromExternal("X"), `'9D99'`)
}

// A key that is a timestamp is compared as one, so that an index on it is used, and counted by its microseconds, exactly.
func TestTimeKeys(t *testing.T) {
	s := statementsFor("t", rows.Schema{
		Columns: []rows.Column{{Name: "ts", Type: rows.Timestamp, Derived: true}},
		Number:  []rows.Term{{Column: 0, Minus: 1_767_225_600_000_000, Times: 1}},
	}, methodArray, options{})
	s.primaryKey = true
	const micros = `(EXTRACT(DAY FROM ("TS" - TIMESTAMP '1970-01-01 00:00:00')) * 86400000000 + ` +
		`EXTRACT(HOUR FROM ("TS" - TIMESTAMP '1970-01-01 00:00:00')) * 3600000000 + ` +
		`EXTRACT(MINUTE FROM ("TS" - TIMESTAMP '1970-01-01 00:00:00')) * 60000000 + ` +
		`EXTRACT(SECOND FROM ("TS" - TIMESTAMP '1970-01-01 00:00:00')) * 1000000)`
	assert.Equal(t, "("+micros+" - 1767225600000000)", s.Number(s.Schema))
	assert.Equal(t, `"TS" BETWEEN TIMESTAMP '2026-01-01 00:00:00.000007' AND TIMESTAMP '2026-01-01 00:00:01.000000'`,
		s.Within(loader.KeyRange{First: 7, Last: 1_000_000}))
	assert.Contains(t, s.SelectRows([]int64{0, 1}), ` WHERE "TS" IN (TIMESTAMP '2026-01-01 00:00:00.000000',TIMESTAMP '2026-01-01 00:00:00.000001')`)
	assert.Contains(t, s.SelectNextFree(), `EXTRACT(DAY FROM (MAX("TS") - TIMESTAMP`)
	assert.Contains(t, s.createTable(), `PRIMARY KEY ("TS")`)
}

// Of a key of several columns the first one is bounded by itself, for an index begins with it.
func TestKeysOfSeveralColumns(t *testing.T) {
	s := statementsFor("t", rows.Schema{
		Columns: []rows.Column{{Name: "o", Type: rows.Int64, Derived: true}, {Name: "n", Type: rows.Int64, Derived: true}},
		Number:  []rows.Term{{Column: 0, Minus: 1, Times: 4}, {Column: 1, Minus: 1, Times: 1}},
	}, methodSingle, options{})
	s.primaryKey = true
	assert.Contains(t, s.createTable(), `PRIMARY KEY ("O", "N")`)
	assert.Contains(t, s.selectBatch(loader.Ref{First: 6, Rows: 4}),
		` WHERE "O" BETWEEN 2 AND 3 AND ("O" - 1) * 4 + ("N" - 1) BETWEEN 6 AND 9`)
}

func TestLongTextsAreCut(t *testing.T) {
	text := strings.Repeat("it's ", 15_000)
	parts := strings.Split(clob(text), " || ")
	require.Len(t, parts, 5)
	var again strings.Builder
	for _, p := range parts {
		inner := strings.TrimSuffix(strings.TrimPrefix(p, "TO_CLOB('"), "')")
		assert.Less(t, len(inner), 32767)
		again.WriteString(strings.ReplaceAll(inner, "''", "'"))
	}
	assert.Equal(t, text, again.String())
	assert.Equal(t, "'it''s'", clob("it's"))
}

func TestURIOf(t *testing.T) {
	for want, a := range map[string]objstore.Access{
		"https://b.s3.eu-central-1.amazonaws.com/in/r%2C1/g0/0.csv":   {Bucket: "b", Region: "eu-central-1"},
		"https://s3.eu-central-1.amazonaws.com/b.c/in/r%2C1/g0/0.csv": {Bucket: "b.c", Region: "eu-central-1"},
		"https://s3.eu-central-1.amazonaws.com/b/in/r%2C1/g0/0.csv":   {Bucket: "b", Region: "eu-central-1", PathStyle: true},
		"https://n.compat.objectstorage.example/b/in/r%2C1/g0/0.csv":  {Bucket: "b", Region: "x", Endpoint: "https://n.compat.objectstorage.example"},
	} {
		assert.Equal(t, want, uriOf(a, "in/r,1/g0/0.csv"))
	}
}
