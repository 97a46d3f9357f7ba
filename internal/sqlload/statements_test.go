package sqlload_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func postgres() sqlload.Dialect {
	return sqlload.Dialect{Quote: `"`, Divide: "%s / %d", TextNumber: "CAST(%s AS bigint)", Decimal: "numeric"}
}

func documents() rows.Schema {
	return rows.Schema{
		Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, {Name: "body", Type: rows.Bytes}},
		Number:  []rows.Term{{Column: 0, Times: 1}},
	}
}

func TestDialect(t *testing.T) {
	assert.Equal(t, `"s"."a""b"`, postgres().Identifier(`s.a"b`))
	assert.Equal(t, "`a``b`", sqlload.Dialect{Quote: "`"}.Identifier("a`b"))
	assert.Equal(t, `"id", "body"`, postgres().Columns(documents()))
	assert.Equal(t, `"id"`, postgres().Number(documents()))

	// A number in two columns: 1000 lines an order, lines counted from 1.
	lines := rows.Schema{
		Columns: []rows.Column{{Name: "o"}, {Name: "l"}},
		Number:  []rows.Term{{Column: 0, Times: 1000}, {Column: 1, Minus: 1, Times: 1}},
	}
	assert.Equal(t, `"o" * 1000 + ("l" - 1)`, postgres().Number(lines))
}

func TestStatements(t *testing.T) {
	s := sqlload.Statements{Dialect: postgres(), Schema: documents(), Table: `"t"`, Claims: `"c"`}
	ref := loader.Ref{ID: batch.ID{Run: "r-1", Number: 3}, First: 30, Rows: 4}
	for want, got := range map[string]string{
		`INSERT INTO "c" (run, batch, first_key, row_count) VALUES ('r-1', 3, 30, 4)`:                      s.InsertClaim(ref),
		`INSERT INTO "c" (run, batch, first_key, row_count) VALUES ('r-1', -5398475073185438436, 30, 400)`: s.InsertReservation("r-1", 30, 400),
		`SELECT row_count FROM "c" WHERE run = 'r-1' AND batch = 3`:                                        s.SelectClaim("r-1", 3),
		`SELECT first_key FROM "c" WHERE run = 'r-1' AND batch IN (-1, -5398475073185438436)`:              s.SelectReservation("r-1"),
		`SELECT batch, row_count FROM "c" WHERE run = 'r-1' AND batch >= 0`:                                s.SelectClaims("r-1"),
		`DELETE FROM "c" WHERE run = 'r-1' AND batch = -2`:                                                 s.DeleteClaim("r-1", sqlload.Probe),
		`DELETE FROM "c" WHERE run = 'r-1'`:                                                                s.DeleteClaims("r-1"),
		`SELECT GREATEST((SELECT COALESCE(MAX("id"), -1) + 1 FROM "t"), (SELECT COALESCE(MAX(first_key + row_count), 0) FROM "c" WHERE batch IN (-1, -5398475073185438436)))`: s.SelectNextFree(),
		`DELETE FROM "t" WHERE "id" = 7`:                                             s.DeleteRow(7),
		`SELECT COUNT(*) FROM "t" WHERE "id" = 7`:                                    s.SelectRow(7),
		`SELECT COUNT(*) FROM "t" WHERE "id" BETWEEN 5 AND 9`:                        s.SelectCount(loader.KeyRange{First: 5, Last: 9}),
		`SELECT COUNT(DISTINCT "id") FROM "t" WHERE "id" BETWEEN 5 AND 9`:            s.SelectDistinct(loader.KeyRange{First: 5, Last: 9}),
		`SELECT COUNT(*), MIN("id"), MAX("id") FROM "t" WHERE "id" BETWEEN 5 AND 9`:  s.SelectSpan(loader.KeyRange{First: 5, Last: 9}),
		`SELECT "id", "id", "body" FROM "t" WHERE "id" IN (1,5)`:                     s.SelectRows([]int64{1, 5}),
		`SELECT COUNT(*), MIN("id"), MAX("id") FROM "t" WHERE "id" IN (30,31,32,33)`: s.SelectFront(ref),
		`SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric), CAST(SUM(l1) AS numeric) ` +
			`FROM (SELECT ("id" - 5) / 10 AS bucket, ("id" - 5) % 10 AS o, OCTET_LENGTH("body") AS l1 FROM "t" WHERE "id" BETWEEN 5 AND 99) t GROUP BY bucket`: s.SelectBuckets(loader.Grouping{KeyRange: loader.KeyRange{First: 5, Last: 99}, Size: 10, Lengths: true}),
	} {
		assert.Equal(t, want, got)
	}
}

// What sums of 64 bits cannot hold is widened before it is summed; lengths are in bytes.
func TestBucketsInADialectOfItsOwn(t *testing.T) {
	d := sqlload.Dialect{Quote: "`", Divide: "%s DIV %d", Decimal: "DECIMAL(38, 0)", Wide: "LARGEINT", TextLength: "LENGTH", BytesLength: "SIZE"}
	schema := documents()
	schema.Columns = append(schema.Columns, rows.Column{Name: "name", Type: rows.Text})
	s := sqlload.Statements{Dialect: d, Schema: schema, Table: "`t`"}
	assert.Equal(t, "SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), "+
		"CAST(SUM(CAST(o AS LARGEINT) * CAST(o AS LARGEINT)) AS DECIMAL(38, 0)), CAST(SUM(CAST(l1 AS LARGEINT)) AS DECIMAL(38, 0)), "+
		"CAST(SUM(CAST(l2 AS LARGEINT)) AS DECIMAL(38, 0)) "+
		"FROM (SELECT (`id` - 0) DIV 10 AS bucket, (`id` - 0) % 10 AS o, SIZE(`body`) AS l1, LENGTH(`name`) AS l2 FROM `t` "+
		"WHERE `id` BETWEEN 0 AND 99) t GROUP BY bucket",
		s.SelectBuckets(loader.Grouping{KeyRange: loader.KeyRange{Last: 99}, Size: 10, Lengths: true}))
}

// A key of digits is compared as text where it can be, and every number comes back as digits where a driver would round it.
func TestTextKeys(t *testing.T) {
	d := sqlload.Dialect{
		Quote: `"`, Upper: true, Divide: "TRUNC(%s / %d)", Modulo: "MOD(%s, %d)", Digits: "TO_CHAR(%s)", TextNumber: "TO_NUMBER(%s)",
		Dual: " FROM DUAL", TextLength: "VSIZE",
	}
	s := sqlload.Statements{
		Dialect: d, Table: d.Identifier("u.t"), Claims: d.Identifier("c"),
		Schema: rows.Schema{
			Columns: []rows.Column{{Name: "id", Type: rows.Text, MaxBytes: 5, Derived: true}},
			Number:  []rows.Term{{Column: 0, Times: 1}},
		},
	}
	in := loader.KeyRange{First: 5, Last: 99}
	for want, got := range map[string]string{
		`DELETE FROM "U"."T" WHERE "ID" = '00007'`:                                                                                                   s.DeleteRow(7),
		`SELECT TO_CHAR(row_count) FROM "C" WHERE run = 'r-1' AND batch = 3`:                                                                         s.SelectClaim("r-1", 3),
		`SELECT TO_CHAR(first_key) FROM "C" WHERE run = 'r-1' AND batch IN (-1, -5398475073185438436)`:                                               s.SelectReservation("r-1"),
		`SELECT TO_CHAR(batch), TO_CHAR(row_count) FROM "C" WHERE run = 'r-1' AND batch >= 0`:                                                        s.SelectClaims("r-1"),
		`SELECT TO_CHAR(COUNT(*)) FROM "U"."T" WHERE "ID" = '00007'`:                                                                                 s.SelectRow(7),
		`SELECT TO_CHAR(COUNT(*)) FROM "U"."T" WHERE "ID" BETWEEN '00005' AND '00099'`:                                                               s.SelectCount(in),
		`SELECT TO_CHAR(COUNT(DISTINCT TO_NUMBER("ID"))) FROM "U"."T" WHERE "ID" BETWEEN '00005' AND '00099'`:                                        s.SelectDistinct(in),
		`SELECT TO_CHAR(COUNT(*)), TO_CHAR(MIN(TO_NUMBER("ID"))), TO_CHAR(MAX(TO_NUMBER("ID"))) FROM "U"."T" WHERE "ID" BETWEEN '00005' AND '00099'`: s.SelectSpan(in),
		`SELECT TO_CHAR(TO_NUMBER("ID")), "ID" FROM "U"."T" WHERE "ID" IN ('00001','00005')`:                                                         s.SelectRows([]int64{1, 5}),
		`SELECT TO_CHAR(GREATEST((SELECT COALESCE(TO_NUMBER(MAX("ID")), -1) + 1 FROM "U"."T"), (SELECT COALESCE(MAX(first_key + row_count), 0) FROM "C" WHERE batch IN (-1, -5398475073185438436)))) FROM DUAL`: s.SelectNextFree(),
		`SELECT TO_CHAR(bucket), TO_CHAR(COUNT(*)), TO_CHAR(MIN(o)), TO_CHAR(MAX(o)), TO_CHAR(SUM(o)), TO_CHAR(SUM(o * o)), TO_CHAR(SUM(l0)) ` +
			`FROM (SELECT TRUNC((TO_NUMBER("ID") - 5) / 10) AS bucket, MOD((TO_NUMBER("ID") - 5), 10) AS o, VSIZE("ID") AS l0 FROM "U"."T" ` +
			`WHERE "ID" BETWEEN '00005' AND '00099') t GROUP BY bucket`: s.SelectBuckets(loader.Grouping{KeyRange: in, Size: 10, Lengths: true}),
	} {
		assert.Equal(t, want, got)
	}
}

// Columns are read by an expression where a driver would reshape them, and lists are only as long as the server takes.
func TestSelectRowsInADialectOfItsOwn(t *testing.T) {
	d := sqlload.Dialect{
		Quote: `"`, Digits: "TO_CHAR(%s)", MaxList: 2,
		Reads: map[rows.Type]string{rows.Int64: "TO_CHAR(%s)", rows.Date: "TO_CHAR(%s, 'YYYY')"},
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
}

func TestOutcome(t *testing.T) {
	for found, want := range map[int64]loader.Applied{0: loader.No, 3: loader.Yes, 1: loader.Unknown, 6: loader.Unknown} {
		assert.Equal(t, want, sqlload.Outcome(found, 3))
	}
}

// Keys are set aside in one table, by whatever name runs know it, and under a number that is no batch's.
func TestReservationsAreOfATable(t *testing.T) {
	reserved := func(table string) (number int64) {
		s := sqlload.Statements{Dialect: postgres(), Schema: documents(), Table: table, Claims: `"c"`}
		_, err := fmt.Sscanf(s.InsertReservation("r", 0, 1), `INSERT INTO "c" (run, batch, first_key, row_count) VALUES ('r', %d, 0, 1)`, &number)
		require.NoError(t, err)
		require.Less(t, number, int64(sqlload.Probe))
		require.Contains(t, s.SelectNextFree(), fmt.Sprintf("batch IN (-1, %d)", number), "and those of all tables hold")
		require.Contains(t, s.SelectReservation("r"), fmt.Sprintf("batch IN (-1, %d)", number))
		return number
	}
	assert.Equal(t, reserved(`"t"`), reserved(`"s"."t"`), "a silent run does not know the schema")
	assert.Equal(t, reserved(`"t"`), reserved(`"S"."T"`), "some servers keep names in lower case")
	assert.NotEqual(t, reserved(`"s"."t"`), reserved(`"s"."u"`))
	assert.NotEqual(t, reserved(`"s"."t"`), reserved(`"s"."a.tt"`))
}
