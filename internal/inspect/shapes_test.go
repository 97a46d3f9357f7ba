package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// buckets are equal parts of a share, from one bound to the next.
func buckets(share float64, bounds ...string) (all []loader.Interval) {
	for i := range len(bounds) - 1 {
		all = append(all, loader.Interval{Least: bounds[i], Most: bounds[i+1], Share: share / float64(len(bounds)-1)})
	}
	return all
}

func often(pairs ...any) (all []loader.CommonValue) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, loader.CommonValue{Value: pairs[i].(string), Share: pairs[i+1].(float64)})
	}
	return all
}

// What the statistics of a column become, in a table of 10,000 rows.
func TestShapes(t *testing.T) {
	integer := bigint("c")
	decimal := loader.Column{Name: "c", Type: "numeric(9,2)", Values: &rows.Column{Type: rows.Decimal, Digits: 9, Scale: 2}}
	double := loader.Column{Name: "c", Type: "double", Values: &rows.Column{Type: rows.Float64}}
	seconds := loader.Column{Name: "c", Type: "datetime", Values: &rows.Column{Type: rows.Timestamp, Scale: 6}}
	moment := loader.Column{Name: "c", Type: "timestamptz", Values: &rows.Column{Type: rows.TimestampTZ}}
	day := loader.Column{Name: "c", Type: "date", Values: &rows.Column{Type: rows.Date}}
	truth := loader.Column{Name: "c", Type: "boolean", Values: &rows.Column{Type: rows.Bool}}
	enum := loader.Column{Name: "c", Type: "enum", Values: &rows.Column{Type: rows.Enum, Labels: []string{"a", "b", "c"}}}
	char := loader.Column{Name: "c", Type: "char(4)", Values: &rows.Column{Type: rows.Char, MaxBytes: 4}}

	long := strings.Repeat("x", 25)
	for name, c := range map[string]struct {
		column loader.Column
		shape  loader.Shape
		want   string
	}{
		"common values and bounds": {integer, loader.Shape{Common: often("7", 0.25, "9", 0.05), Buckets: buckets(0.7, "10", "20", "99")},
			"{type: bigint, histogram: [10, 20, 99], common: {7: 25%, 9: 5%}}"},
		"shares are of what is not NULL": {null(integer), loader.Shape{Nulls: 0.5, Common: often("7", 0.25), Buckets: buckets(0.25, "10", "99")},
			"{type: bigint, histogram: [10, 99], common: {7: 50%}, nulls: 50%}"},
		"few values are all that there are": {integer, loader.Shape{Common: often("2", 2./3, "1", 1./3), Distinct: 2},
			"{type: bigint, values: {2: 66.6667%, 1: 33.3333%}}"},
		"few values of many": {integer, loader.Shape{Buckets: buckets(1, "0", "1000000"), Distinct: 300},
			"{type: bigint, histogram: [0, 1000000], distinct: 300}"},
		"all are NULL": {null(integer), loader.Shape{Nulls: 1}, "{type: bigint, uniform: {min: 1, max: 1000000}, nulls: 100%}"},
		"a decimal":    {decimal, loader.Shape{Buckets: buckets(1, "0.5", "1", "99.99")}, `{type: "decimal(9,2)", histogram: [0.50, 1.00, 99.99]}`},
		"a double":     {double, loader.Shape{Buckets: buckets(1, "-0.1", "2.55", "1e2")}, "{type: double, histogram: [-0.125, 2.5625, 100]}"},
		"seconds": {seconds, loader.Shape{Buckets: buckets(1, "2025-01-01 00:00:00.700000", "2025-01-02 12:00:00.000000")},
			`{type: timestamp(0), histogram: ["2025-01-01 00:00:00", "2025-01-02 12:00:00"]}`},
		"a moment": {moment, loader.Shape{Buckets: buckets(1, "2025-01-01 01:00:00.5+01", "2025-01-02 00:00:00+00")},
			`{type: timestamptz, histogram: ["2025-01-01 00:00:00.5", "2025-01-02 00:00:00"]}`},
		"no time of ours": {moment, loader.Shape{Buckets: buckets(1, "-infinity", "infinity")},
			"{type: timestamptz, uniform: {min: 2025-01-01, max: 2025-12-31}}"},
		"a day":   {day, loader.Shape{Common: often("1969-12-31", 0.5), Buckets: buckets(0.5, "2025-01-01", "2025-02-01")}, "{type: date, histogram: [2025-01-01, 2025-02-01], common: {1969-12-31: 50%}}"},
		"a truth": {truth, loader.Shape{Common: often("f", 0.9, "t", 0.1)}, `{type: boolean, values: {"true": 10%, "false": 90%}}`},
		"labels":  {enum, loader.Shape{Common: often("b", 0.9, "a", 0.1)}, `{type: enum, values: {a: 10%, b: 90%, c: 0%}}`},
		"texts": {text("c", 60), loader.Shape{Common: often("secret", 0.25, "s", 0.125, "äöü", 0.125), Buckets: buckets(0.5, long, long+"y"), Distinct: 500},
			`{type: text(60), histogram: [25, 26], distinct: 497, common: {"v1....": 25%, "b": 12.5%, "v3.": 12.5%}}`},
		"long texts": {text("c", 0), loader.Shape{Length: 2000, Distinct: 9900}, `{type: text, histogram: [1, 3999]}`},
		"short texts": {text("c", 60), loader.Shape{Buckets: buckets(1, "ab", "b", "bcd"), Distinct: 9900},
			`{type: text(60), text: {length: 1..3}}`},
		"a char": {char, loader.Shape{Common: often("ab  ", 1.)}, `{type: char(4), values: {"v1": 100%}}`},
		"in the order of rows": {moment, loader.Shape{Buckets: buckets(1, "2025-01-01 00:00:00+00", "2025-02-01 00:00:00+00"), Distinct: 9000, Order: 0.9991},
			`{type: timestamptz, histogram: ["2025-01-01 00:00:00", "2025-02-01 00:00:00"]}  # in the order of the rows (correlation 0.999), which is not imitated`},
	} {
		t.Run(name, func(t *testing.T) {
			c.column.Shape = &c.shape
			d := &loader.Description{Schema: "s", Table: "t", Rows: 10_000, Columns: []loader.Column{bigint("id"), c.column}, Keys: []loader.Key{primary("id")}}
			text, err := Write(d, "Server 1", false)
			require.NoError(t, err)
			assert.Contains(t, string(text), "\n  c: "+c.want+"\n")
		})
	}
}

// What is in a file is said at its head; a CHECK's values and, if one asks for them, texts stay.
func TestHeadOfShapes(t *testing.T) {
	shaped := text("c", 9)
	shaped.Shape = &loader.Shape{Common: often("${secret}", 1.)}
	listed := text("l", 9)
	listed.Shape = &loader.Shape{Common: often("on", 0.75, "off", 0.25)}
	d := &loader.Description{
		Schema: "s", Table: "t", Columns: []loader.Column{bigint("id"), shaped, listed, bigint("e")}, Keys: []loader.Key{primary("id")},
		Checks: []string{"l IN ('off', 'on')"}, Analyzed: "2026-11-27", Analyze: "ANALYZE s.t",
	}
	for keep, want := range map[bool]string{
		false: "# Shapes only: no text of that table is in this file. Correlations between columns are not imitated.\n",
		true:  "# Common values of that table, texts too, are in this file. Correlations between columns are not imitated.\n",
	} {
		text, err := Write(d, "Server 1", keep)
		require.NoError(t, err)
		assert.Contains(t, string(text), want+"# Its statistics are of 2026-11-27.\n# The server has no statistics of column e. To gather them: ANALYZE s.t\n")
		assert.Equal(t, keep, strings.Contains(string(text), `{"$${secret}": 100%}`), "%s", text)
		assert.Contains(t, string(text), "values: {\"off\": 25%, \"on\": 75%}")
	}
}

// A table without statistics is no silent push of other rows.
func TestNoShapes(t *testing.T) {
	d := &loader.Description{Schema: "s", Table: "t", Columns: []loader.Column{bigint("id")}, Keys: []loader.Key{primary("id")}, Analyze: "ANALYZE s.t"}
	_, err := Write(d, "Server 1", false)
	require.EqualError(t, err, "the server has no statistics of table s.t, or does not show them to this user: run ANALYZE s.t, or leave --stats out")
}

// Parts of any width become parts of one share.
func TestQuantiles(t *testing.T) {
	bounds := quantiles([]interval{{0, 9, 0.5}, {50, 50, 0.25}, {100, 199, 0.25}})
	require.Len(t, bounds, mostShapes+1)
	assert.Equal(t, []int64{0, 5, 50, 50, 100, 199}, []int64{bounds[0], bounds[25], bounds[50], bounds[74], bounds[75], bounds[100]}, fmt.Sprint(bounds))
	assert.Equal(t, []int64{1, 5, 5, 9}, quantiles([]interval{{1, 5, 0.2}, {5, 5, 0.2}, {5, 9, 0.2}}))
}
