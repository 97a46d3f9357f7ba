package sqlload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

func postgres() sqlload.Dialect {
	return sqlload.Dialect{
		Quote: `"`, Divide: "%s / %d", TextNumber: "CAST(%s AS bigint)", Decimal: "numeric",
		TimeNumber: "micros(%s)", TimeLiteral: "TIMESTAMP '%s'",
	}
}

func documents() rows.Schema {
	return rows.Schema{
		Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, {Name: "body", Type: rows.Bytes, MaxBytes: 9}},
		Number:  []rows.Term{{Column: 0, Times: 1}},
	}
}

func TestIdentifier(t *testing.T) {
	assert.Equal(t, `"s"."a""b"`, postgres().Identifier(`s.a"b`))
	assert.Equal(t, "`a``b`", sqlload.Dialect{Quote: "`"}.Identifier("a`b"))
}

func TestStatements(t *testing.T) {
	s := sqlload.Statements{
		Dialect: postgres(), Schema: documents(), Table: `"t"`, Claims: `"s"."terapush_claims"`,
		Row: loader.RunRow{Run: "r-1", Part: "0/1", Epoch: "2-x"},
	}
	ref := loader.Ref{ID: batch.ID{Run: "r-1", Number: 3}, First: 30, Rows: 4}
	for want, got := range map[string]string{
		`INSERT INTO "s"."terapush_claims" (run, batch, first_key, row_count) SELECT 'r-1', 3, 30, 4 ` +
			`FROM "s"."terapush_runs" WHERE run = 'r-1' AND part = '0/1' AND epoch = '2-x' AND state = 'open'`: s.InsertClaim(ref),
		`INSERT INTO "s"."terapush_claims" (run, batch, first_key, row_count) VALUES ('r-1', 3, 30, 4)`: s.TryClaim(ref),
		`SELECT row_count FROM "s"."terapush_claims" WHERE run = 'r-1' AND batch = 3`:                   s.SelectClaim("r-1", 3),
		`SELECT batch, row_count FROM "s"."terapush_claims" WHERE run = 'r-1' AND batch >= 0`:           s.SelectClaims("r-1"),
		`DELETE FROM "s"."terapush_claims" WHERE run = 'r-1' AND batch = -2`:                            s.DeleteClaim("r-1", sqlload.Probe),
		`DELETE FROM "s"."terapush_claims" WHERE run = 'r-1' AND batch BETWEEN 10 AND 19`:               s.DeleteClaims("r-1", 10, 19),
	} {
		assert.Equal(t, want, got)
	}
}

// lines has four lines an order; orders and lines count from 1.
func lines() rows.Schema {
	return rows.Schema{
		Columns: []rows.Column{{Name: "o", Type: rows.Int64}, {Name: "n", Type: rows.Int64}, {Name: "x", Type: rows.Text}},
		Number:  []rows.Term{{Column: 0, Minus: 1, Times: 4}, {Column: 1, Minus: 1, Times: 1}},
	}
}

// How rows are found and numbered, by the kind of their key. Real servers judge the arithmetic in the back-ends' tests.
func TestKeys(t *testing.T) {
	const free = ", -1) + 1 FROM T"
	key := func(c rows.Column, minus int64) rows.Schema {
		c.Derived = true
		return rows.Schema{Columns: []rows.Column{c}, Number: []rows.Term{{Minus: minus, Times: 1}}}
	}
	one, text, at, several := postgres(), postgres(), postgres(), postgres()
	// Every number comes back as digits where a driver would round it.
	text.Digits, text.TextNumber = "D(%s)", "N(%s)"
	at.TimeNumber, at.TimeLiteral = "MICROS(%s)", "AT '%s'"
	several.Leading = true
	tuples := several
	tuples.Tuples = "(VALUES %s)"
	for _, c := range []struct {
		dialect                 sqlload.Dialect
		schema                  rows.Schema
		is, within, among, free string
	}{
		{
			dialect: one, schema: documents(), is: `"id" = 7`, within: `"id" BETWEEN 5 AND 9`, among: `"id" IN (8,1)`,
			free: `COALESCE(MAX("id")` + free,
		},
		{ // compared as text, for the sake of an index
			dialect: text, schema: key(rows.Column{Name: "id", Type: rows.Text, MaxBytes: 5}, 0),
			is: `"id" = '00007'`, within: `"id" BETWEEN '00005' AND '00009'`, among: `"id" IN ('00008','00001')`,
			free: `D(COALESCE(N(MAX("id")), -1) + 1) FROM T`,
		},
		{ // a key that does not begin at 0 is compared with its own values, for the sake of an index
			dialect: one, schema: key(rows.Column{Name: "id", Type: rows.Int64}, 1000),
			is: `"id" = 1007`, within: `"id" BETWEEN 1005 AND 1009`, among: `"id" IN (1008,1001)`,
			free: `COALESCE(MAX("id"), 999) + 1 FROM T`,
		},
		{ // a number of microseconds where it is counted, and compared as a timestamp
			dialect: at, schema: key(rows.Column{Name: "ts", Type: rows.Timestamp}, 1_767_225_600_000_000), // 2026-01-01 00:00:00
			is:     `"ts" = AT '2026-01-01 00:00:00.000007'`,
			within: `"ts" BETWEEN AT '2026-01-01 00:00:00.000005' AND AT '2026-01-01 00:00:00.000009'`,
			among:  `"ts" IN (AT '2026-01-01 00:00:00.000008',AT '2026-01-01 00:00:00.000001')`,
			free:   `COALESCE((MICROS(MAX("ts")) - 1767225600000000)` + free,
		},
		{ // the first column is bounded for the sake of its index
			dialect: several, schema: lines(), is: `"o" = 2 AND $ = 7`, within: `"o" BETWEEN 2 AND 3 AND $ BETWEEN 5 AND 9`,
			among: `"o" IN (1,3) AND $ IN (8,1)`, free: `COALESCE(MAX($)` + free,
		},
		{ // single rows by both columns, for the sake of their index
			dialect: tuples, schema: lines(), is: `"o" = 2 AND "n" = 4`, within: `"o" BETWEEN 2 AND 3 AND $ BETWEEN 5 AND 9`,
			among: `("o", "n") IN (VALUES (3,1),(1,2))`, free: `COALESCE(MAX($)` + free,
		},
		{ // no index, no bound
			dialect: one, schema: lines(), is: `$ = 7`, within: `$ BETWEEN 5 AND 9`, among: `$ IN (8,1)`,
			free: `COALESCE(MAX($)` + free,
		},
	} {
		s := sqlload.Statements{Dialect: c.dialect, Schema: c.schema, Table: "T", Claims: "C"}
		want := func(text string) string { return strings.ReplaceAll(text, "$", `("o" - 1) * 4 + ("n" - 1)`) }
		assert.Equal(t, want("DELETE FROM T WHERE "+c.is), s.DeleteRow(7))
		assert.Contains(t, s.SelectRow(7), want(") FROM T WHERE "+c.is))
		assert.Equal(t, want(c.within), s.Within(loader.KeyRange{First: 5, Last: 9}))
		assert.True(t, strings.HasSuffix(s.SelectRows([]int64{8, 1}), want(" FROM T WHERE "+c.among)), s.SelectRows([]int64{8, 1}))
		assert.Equal(t, want("SELECT "+c.free), s.SelectNextFree())
	}
	at.HexNumber = "HEX(%s)"
	uuid := sqlload.Statements{Dialect: at, Table: "T", Schema: key(rows.Column{Name: "id", Type: rows.UUID}, 0)}
	uuid.Schema.Number[0].Hex = true
	assert.Equal(t, `DELETE FROM T WHERE HEX(REPLACE("id", '-', '')) = 7`, uuid.DeleteRow(7), "the key's values are not known")
	uuid.UUID = func(number int64) string { return fmt.Sprintf("0a-%d", number) }
	assert.Equal(t, `DELETE FROM T WHERE "id" = '0a-7'`, uuid.DeleteRow(7))
	assert.Contains(t, uuid.SelectRows([]int64{8, 1}), `"id" IN ('0a-8','0a-1')`)
	assert.Contains(t, uuid.Within(loader.KeyRange{First: 5, Last: 9}), ` BETWEEN 5 AND 9`)
	uuid.RawUUID = true
	assert.Equal(t, `DELETE FROM T WHERE "id" = x'0a7'`, uuid.DeleteRow(7))
	scattered := uuid
	scattered.Schema = key(rows.Column{Name: "id", Type: rows.Int64}, 5)
	scattered.Schema.Number[0].Stride = 10
	assert.Equal(t, `DELETE FROM T WHERE "id" = 75`, scattered.DeleteRow(7))

	last := sqlload.Statements{Dialect: at, Table: "T", Schema: key(rows.Column{Name: "ts", Type: rows.Timestamp}, 1_767_225_600_000_000)}
	assert.Equal(t, `DELETE FROM T WHERE "ts" = AT '9999-12-31 23:59:59.999999'`, last.DeleteRow(last.Schema.MaxNumber()))
}

// Columns are read by an expression where a driver would reshape them, and lists are only as long as the server takes.
func TestSelectRowsInADialectOfItsOwn(t *testing.T) {
	d := sqlload.Dialect{
		Quote: `"`, Digits: "TO_CHAR(%s)", MaxList: 2,
		Types: sqlload.Types{
			{Ours: rows.Int64, SQL: "NUMBER", Read: "TO_CHAR(%s)"},
			{Ours: rows.Date, SQL: "DATE", Read: "TO_CHAR(%s, 'YYYY')"},
		},
	}
	s := sqlload.Statements{Dialect: d, Table: `"t"`, Schema: documents()}
	s.Schema.Columns = append(s.Schema.Columns, rows.Column{Name: "day", Type: rows.Date})
	const read = `SELECT TO_CHAR("id"), TO_CHAR("id"), "body", TO_CHAR("day", 'YYYY') FROM "t" WHERE `
	for want, numbers := range map[string][]int64{
		`"id" IN (1,2)`:                                   {1, 2},
		`("id" IN (1,2) OR "id" IN (3))`:                  {1, 2, 3},
		`("id" IN (1,2) OR "id" IN (3,4) OR "id" IN (5))`: {1, 2, 3, 4, 5},
	} {
		assert.Equal(t, read+want, s.SelectRows(numbers))
	}
	s.Schema, s.Leading = lines(), true
	assert.Contains(t, s.SelectRows([]int64{8, 1, 4}), `WHERE ("o" IN (1,2) OR "o" IN (3)) AND (`)
}

func TestOutcome(t *testing.T) {
	for found, want := range map[int64]loader.Applied{0: loader.No, 3: loader.Yes, 1: loader.Unknown, 6: loader.Unknown} {
		assert.Equal(t, want, sqlload.Outcome(found, 3))
	}
}

// A run's row stands beside the claims, whichever they are, and names the table without its schema.
func TestRunsStandBesideClaims(t *testing.T) {
	for claims, want := range map[string]string{
		`"terapush_claims"`: `"terapush_runs"`, `"a.b"."terapush_claims"`: `"a.b"."terapush_runs"`,
		`"s"."terapush_claims_unlogged"`: `"s"."terapush_runs"`,
	} {
		assert.Equal(t, want, sqlload.Statements{Dialect: postgres(), Claims: claims}.Runs())
	}
}
