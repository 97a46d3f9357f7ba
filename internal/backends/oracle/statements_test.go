package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
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

// planFor are the statements before the server was asked.
func planFor(table string, s rows.Schema, method string, o options) statements {
	return statements{Statements: newStatements(table, s), method: method, options: o}
}

// What the golden files of Explain do not show: the statements of Fetch and Reserve.
func TestStatements(t *testing.T) {
	s := planFor("u.Every", every(), methodArray, options{})
	assert.Equal(t, `LOCK TABLE "U"."TERAPUSH_RUNS" IN EXCLUSIVE MODE WAIT 1`, lockAlone(s.Runs(), time.Second))
	assert.Equal(t, `SELECT TO_CHAR("ID"), TO_CHAR("ID"), "BODY", "NAME", TO_CHAR("DAY", 'YYYY-MM-DD HH24:MI:SS'), `+
		`TO_CHAR("AT", 'YYYY-MM-DD HH24:MI:SS.FF6'), TO_CHAR("PRICE", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''') `+
		`FROM "U"."EVERY" WHERE "ID" IN (7)`, s.SelectRows([]int64{7}))
	assert.Equal(t, 3, strings.Count(s.SelectRows(make([]int64, 2001)), `"ID" IN (`), "lists have a thousand elements at most")

	// A key that is a timestamp is compared as one, so that an index on it is used, and counted by its microseconds.
	s = planFor("t", schemaOf(t, "httplogs"), methodArray, options{})
	assert.Contains(t, s.SelectRows([]int64{0, 1}),
		` WHERE "TS" IN (TIMESTAMP '2026-01-01 00:00:00.000000',TIMESTAMP '2026-01-01 00:00:00.000001')`)
	assert.Contains(t, s.SelectNextFree(), `EXTRACT(SECOND FROM (MAX("TS") - TIMESTAMP '1970-01-01 00:00:00')) * 1000000)`)
}

// A column takes values where they come back as they went in: no padding, rounding or conversion.
func TestColumnsTakeValues(t *testing.T) {
	for _, c := range []struct {
		column int
		row    string // type, bytes, precision and scale as ALL_TAB_COLUMNS has them
		takes  bool
		says   string
	}{
		{0, "NUMBER/22/19/0", true, "NUMBER(19,0)"},
		{0, "NUMBER/22//", true, "NUMBER"},
		{0, "NUMBER/22//0", true, "NUMBER(38,0)"},
		{0, "NUMBER/22/10/0", false, "NUMBER(10,0)"},
		{0, "NUMBER/22/25/-1", false, "NUMBER(25,-1)"},
		{0, "NUMBER/22//30", false, "NUMBER(38,30)"},
		{0, "NUMBER/22/20/2", false, "NUMBER(20,2)"},
		{1, "RAW/2000//", true, "RAW(2000)"},
		{1, "RAW/16//", false, "RAW(16)"},
		{2, "VARCHAR2/50//", true, "VARCHAR2(50 BYTE)"},
		{2, "VARCHAR2/49//", false, "VARCHAR2(49 BYTE)"},
		{2, "CHAR/50//", false, "CHAR(50 BYTE)"},
		{2, "CLOB/4000//", false, "CLOB"},
		{3, "DATE/7//", true, "DATE"},
		{3, "TIMESTAMP(6)/11//6", false, "TIMESTAMP(6)"},
		{4, "TIMESTAMP(9)/11//9", true, "TIMESTAMP(9)"},
		{4, "TIMESTAMP(3)/11//3", false, "TIMESTAMP(3)"},
		{4, "TIMESTAMP(6) WITH TIME ZONE/13//6", false, "TIMESTAMP(6) WITH TIME ZONE"},
		{5, "NUMBER/22/15/2", true, "NUMBER(15,2)"},
		{5, "NUMBER/22/15/3", false, "NUMBER(15,3)"},
		{5, "NUMBER/22/38/2", true, "NUMBER(38,2)"},
		{5, "BINARY_DOUBLE/8//", false, "BINARY_DOUBLE"},
	} {
		row := strings.Split(c.row, "/")
		have := typeOf(row[0], row[1], row[2], row[3])
		assert.Equal(t, c.takes, types.Take(sqlload.ParseType(have), every().Columns[c.column], false), c.row)
		assert.Equal(t, c.says, have)
	}
}

// Integers fit every NUMBER that has room for them, and a number of bits no other type.
func TestColumnsTakeNumbers(t *testing.T) {
	for _, c := range []struct {
		column rows.Column
		takes  string
		not    string
	}{
		{rows.Column{Type: rows.Bool}, "NUMBER(1) NUMBER(5,0) NUMBER", "NUMBER(3,3) NUMBER(3,-1) BINARY_DOUBLE"},
		{rows.Column{Type: rows.Int16}, "NUMBER(5) NUMBER(38,0) NUMBER", "NUMBER(4) NUMBER(6,2)"},
		{rows.Column{Type: rows.Int16, Least: -99, Most: 7}, "NUMBER(2) NUMBER(3)", "NUMBER(1)"},
		{rows.Column{Type: rows.Int32}, "NUMBER(10) NUMBER(19)", "NUMBER(9)"},
		{rows.Column{Type: rows.Int64, Least: 1, Most: 1000}, "NUMBER(4) NUMBER(19)", "NUMBER(3)"},
		{rows.Column{Type: rows.Int64, Least: -1000, Most: 1}, "NUMBER(4) NUMBER(25,2)", "NUMBER(3)"},
		{rows.Column{Type: rows.Uint16}, "NUMBER(5)", "NUMBER(4)"},
		{rows.Column{Type: rows.Uint32}, "NUMBER(10)", "NUMBER(9)"},
		{rows.Column{Type: rows.Uint64}, "NUMBER(20) NUMBER", "NUMBER(19)"},
		{rows.Column{Type: rows.Wide, Digits: 30, Scale: 5}, "NUMBER(30,5) NUMBER(38,5)", "NUMBER(29,5) NUMBER(30,6) NUMBER"},
		{rows.Column{Type: rows.Float64}, "BINARY_DOUBLE", "BINARY_FLOAT FLOAT NUMBER"},
		{rows.Column{Type: rows.Float32}, "BINARY_FLOAT BINARY_DOUBLE", "NUMBER"},
		{rows.Column{Type: rows.UUID}, "VARCHAR2(36) CHAR(36)", "VARCHAR2(35) CHAR(40) RAW(16)"},
		{rows.Column{Type: rows.Char, MaxBytes: 6}, "CHAR(6) VARCHAR2(9)", "CHAR(5)"},
	} {
		for _, kind := range strings.Fields(c.takes) {
			assert.True(t, types.Take(sqlload.ParseType(kind), c.column, false), "%s takes %s", kind, c.column.Type)
		}
		for _, kind := range strings.Fields(c.not) {
			assert.False(t, types.Take(sqlload.ParseType(kind), c.column, false), "%s takes %s", kind, c.column.Type)
		}
	}
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
		"a cluster":      {with(2, "C"), "", "in a cluster", "in a cluster"},
		"an index":       {with(1, "IOT"), "", "organized as an index", "organized as an index"},
		"not for ingest": {with(6, "DISABLED"), "", "not MEMOPTIMIZE FOR WRITE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for method, want := range map[string]string{methodArray: c.always, methodFast: c.fast, methodDirect: c.direct} {
				row := c.row
				if method != methodFast { // which alone asks for the last
					row = row[:6]
				}
				err := catalog{&opened{method: method}}.checkTraits(&sqlload.Relation{Table: `"T"`}, row)
				if want == "" {
					require.NoError(t, err, method)
					continue
				}
				require.ErrorContains(t, err, want, method)
			}
		})
	}
}
