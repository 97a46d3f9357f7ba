package sqlload_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// A timestamp is a number of microseconds where it is counted, and compared as a timestamp where rows are looked for.
func TestTimeKeys(t *testing.T) {
	d := postgres()
	d.TimeNumber, d.TimeLiteral = "MICROS(%s)", "AT '%s'"
	const base = 1_767_225_600_000_000 // 2026-01-01 00:00:00
	s := sqlload.Statements{
		Dialect: d, Table: `"t"`, Claims: `"c"`,
		Schema: rows.Schema{
			Columns: []rows.Column{{Name: "ts", Type: rows.Timestamp, Derived: true}},
			Number:  []rows.Term{{Column: 0, Minus: base, Times: 1}},
		},
	}
	in := loader.KeyRange{First: 5, Last: 1_000_000}
	const (
		number = `(MICROS("ts") - 1767225600000000)`
		within = `"ts" BETWEEN AT '2026-01-01 00:00:00.000005' AND AT '2026-01-01 00:00:01.000000'`
	)
	for want, got := range map[string]string{
		`DELETE FROM "t" WHERE "ts" = AT '2026-01-01 00:00:00.000007'`:                                                                                       s.DeleteRow(7),
		`DELETE FROM "t" WHERE "ts" = AT '9999-12-31 23:59:59.999999'`:                                                                                       s.DeleteRow(s.Schema.MaxNumber()),
		`SELECT COUNT(*) FROM "t" WHERE ` + within:                                                                                                           s.SelectCount(in),
		`SELECT COUNT(DISTINCT ` + number + `) FROM "t" WHERE ` + within:                                                                                     s.SelectDistinct(in),
		`SELECT COUNT(*), MIN(` + number + `), MAX(` + number + `) FROM "t" WHERE ` + within:                                                                 s.SelectSpan(in),
		`SELECT ` + number + `, "ts" FROM "t" WHERE "ts" IN (AT '2026-01-01 00:00:00.000000',AT '2026-01-02 00:00:00.000001')`:                               s.SelectRows([]int64{0, 86_400_000_001}),
		`SELECT COUNT(*), MIN(` + number + `), MAX(` + number + `) FROM "t" WHERE "ts" IN (AT '2026-01-01 00:00:00.000003',AT '2026-01-01 00:00:00.000004')`: s.SelectFront(loader.Ref{First: 3, Rows: 2}),
		`SELECT GREATEST((SELECT COALESCE((MICROS(MAX("ts")) - 1767225600000000), -1) + 1 FROM "t"), (SELECT COALESCE(MAX(first_key + row_count), 0) FROM "c" WHERE batch IN (-1, -5398475073185438436)))`: s.SelectNextFree(),
		`SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric) FROM (SELECT (` + number + ` - 5) / 10 AS bucket, (` +
			number + ` - 5) % 10 AS o FROM "t" WHERE ` + within + `) t GROUP BY bucket`: s.SelectBuckets(loader.Grouping{KeyRange: in, Size: 10}),
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

// Where a number comes from several columns, the first one is bounded for the sake of its index.
func TestKeysOfSeveralColumns(t *testing.T) {
	d := postgres()
	s := sqlload.Statements{Dialect: d, Schema: lines(), Table: `"t"`}
	const number = `("o" - 1) * 4 + ("n" - 1)`
	in := loader.KeyRange{First: 6, Last: 12}
	assert.Equal(t, `"o", "n"`, d.KeyColumns(lines()))
	assert.Equal(t, number+" BETWEEN 6 AND 12", s.Within(in), "no index, no bound")
	s.Leading = true
	for want, got := range map[string]string{
		`"o" BETWEEN 2 AND 4 AND ` + number + ` BETWEEN 6 AND 12`:                                                               s.Within(in),
		`"o" BETWEEN 1 AND 1 AND ` + number + ` BETWEEN 0 AND 3`:                                                                s.Within(loader.KeyRange{First: 0, Last: 3}),
		`DELETE FROM "t" WHERE "o" = 2 AND ` + number + ` = 7`:                                                                  s.DeleteRow(7),
		`SELECT COUNT(*) FROM "t" WHERE "o" = 3 AND ` + number + ` = 8`:                                                         s.SelectRow(8),
		`SELECT ` + number + `, "o", "n", "x" FROM "t" WHERE "o" IN (1,2,3) AND ` + number + ` IN (8,1,0,4)`:                    s.SelectRows([]int64{8, 1, 0, 4}),
		`SELECT COUNT(*), MIN(` + number + `), MAX(` + number + `) FROM "t" WHERE "o" IN (1,2) AND ` + number + ` IN (2,3,4,5)`: s.SelectFront(loader.Ref{First: 2, Rows: 4}),
	} {
		assert.Equal(t, want, got)
	}
	s.MaxList = 2
	assert.Equal(t, `SELECT `+number+`, "o", "n", "x" FROM "t" WHERE ("o" IN (1,2) OR "o" IN (3)) AND (`+number+` IN (8,1) OR `+number+` IN (4))`,
		s.SelectRows([]int64{8, 1, 4}))
	// A key of one column has no need of it.
	s.Schema = documents()
	assert.Equal(t, `"id" BETWEEN 6 AND 12`, s.Within(in))
}
