package sqltx_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/sqltx"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func postgres() sqltx.Dialect { return sqltx.Dialect{Quote: `"`, Divide: "/", Decimal: "numeric"} }

func documents() rows.Schema {
	return rows.Schema{
		Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, {Name: "body", Type: rows.Bytes}},
		Number:  []rows.Term{{Column: 0, Times: 1}},
	}
}

func TestDialect(t *testing.T) {
	assert.Equal(t, `"s"."a""b"`, postgres().Identifier(`s.a"b`))
	assert.Equal(t, "`a``b`", sqltx.Dialect{Quote: "`"}.Identifier("a`b"))
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
	s := sqltx.Statements{Dialect: postgres(), Schema: documents(), Table: `"t"`, Claims: `"c"`}
	ref := loader.Ref{ID: batch.ID{Run: "r-1", Number: 3}, First: 30, Rows: 4}
	for want, got := range map[string]string{
		`INSERT INTO "c" (run, batch, first_key, row_count) VALUES ('r-1', 3, 30, 4)`:                                                                s.InsertClaim(ref),
		`INSERT INTO "c" (run, batch, first_key, row_count) VALUES ('r-1', -1, 30, 400)`:                                                             s.InsertReservation("r-1", 30, 400),
		`SELECT row_count FROM "c" WHERE run = 'r-1' AND batch = 3`:                                                                                  s.SelectClaim("r-1", 3),
		`SELECT first_key FROM "c" WHERE run = 'r-1' AND batch = -1`:                                                                                 s.SelectReservation("r-1"),
		`SELECT batch, row_count FROM "c" WHERE run = 'r-1' AND batch >= 0`:                                                                          s.SelectClaims("r-1"),
		`DELETE FROM "c" WHERE run = 'r-1' AND batch = -2`:                                                                                           s.DeleteClaim("r-1", sqltx.Probe),
		`DELETE FROM "c" WHERE run = 'r-1'`:                                                                                                          s.DeleteClaims("r-1"),
		`SELECT GREATEST((SELECT COALESCE(MAX("id"), -1) + 1 FROM "t"), (SELECT COALESCE(MAX(first_key + row_count), 0) FROM "c" WHERE batch = -1))`: s.SelectNextFree(),
		`DELETE FROM "t" WHERE "id" = 7`:                                                                                                             s.DeleteRow(7),
		`SELECT COUNT(*) FROM "t" WHERE "id" = 7`:                                                                                                    s.SelectRow(7),
		`SELECT COUNT(DISTINCT "id") FROM "t" WHERE "id" BETWEEN 5 AND 9`:                                                                            s.SelectDistinct(loader.KeyRange{First: 5, Last: 9}),
		`SELECT "id", "id", "body" FROM "t" WHERE "id" IN (1,5)`:                                                                                     s.SelectRows([]int64{1, 5}),
		`SELECT COUNT(*), MIN("id"), MAX("id") FROM "t" WHERE "id" IN (30,31,32,33)`:                                                                 s.SelectFront(ref),
		`SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS numeric), CAST(SUM(o * o) AS numeric), CAST(SUM(l1) AS numeric) ` +
			`FROM (SELECT ("id" - 5) / 10 AS bucket, ("id" - 5) % 10 AS o, OCTET_LENGTH("body") AS l1 FROM "t" WHERE "id" BETWEEN 5 AND 99) AS t GROUP BY bucket`: s.SelectBuckets(loader.Grouping{KeyRange: loader.KeyRange{First: 5, Last: 99}, Size: 10, Lengths: true}),
	} {
		assert.Equal(t, want, got)
	}
}
