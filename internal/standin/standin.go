// Package standin is what the stand-ins for Doris and Oracle share: tables that keep rows by their numbers, and
// the statements that verification asks of them, known by their shapes. No SQL is evaluated here. That the arithmetic in
// those statements is right is shown where a real server can judge it.
package standin

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Table is a table and its rows. A server's lock guards it.
type Table struct {
	Name    string // as statements write it, without quotes
	Comment string
	Columns []Column
	// Schema gives a row its number. It has no columns where the table is none of a known dataset: such a table takes no rows.
	Schema rows.Schema
	Rows   []Row // in the order of their arrival
}

// Column is a column as CREATE TABLE names it.
type Column struct {
	Name, Type string // without quotes; the type in upper case, with its length
	Nullable   bool
	Default    bool
	Virtual    bool
	Identity   string // ALWAYS or BY DEFAULT
}

// Row is a row with its number. Values are as loader.Fetcher returns them, in the schema's order; nil is NULL.
type Row struct {
	Number int64
	Values []any
}

// NewTable makes an empty table, with the schema of the dataset whose columns it has, in whatever order. more are schemas of a
// test's own.
func NewTable(name string, columns []Column, more ...rows.Schema) *Table {
	t := &Table{Name: name, Columns: columns}
	for _, s := range slices.Concat(more, datasets()) {
		if len(columns) == len(s.Columns) && !slices.ContainsFunc(s.Columns, func(c rows.Column) bool { return t.Column(c.Name) == nil }) {
			t.Schema = s
			t.Schema.Columns = slices.Clone(s.Columns)
			break
		}
	}
	for i, c := range t.Schema.Columns { // documents have either
		if kind := t.Column(c.Name).Type; c.Type == rows.Bytes && (strings.Contains(kind, "CHAR") || strings.Contains(kind, "STRING")) {
			t.Schema.Columns[i].Type = rows.Text
		}
	}
	return t
}

// Column returns the column of a name, in whatever case; nil where there is none.
func (t *Table) Column(name string) *Column {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
	if i < 0 {
		return nil
	}
	return &t.Columns[i]
}

// datasets returns their schemas. Making some of the datasets takes milliseconds.
var datasets = sync.OnceValue(func() (all []rows.Schema) {
	for _, name := range dataset.Names() {
		if d, err := dataset.New(name, dataset.Options{}); err == nil {
			all = append(all, d.Schema())
		}
	}
	return all
})

// Row makes a row of values in the schema's order. It fails where they have no number.
func (t *Table) Row(values []any) (Row, error) {
	if len(values) != len(t.Schema.Columns) || len(values) == 0 {
		return Row{}, fmt.Errorf("a row of %d values for the %d columns of a dataset's table", len(values), len(t.Schema.Columns))
	}
	r := Row{Values: values}
	for _, term := range t.Schema.Number {
		n, is := values[term.Column].(int64)
		if text, variable := values[term.Column].([]byte); variable {
			parsed, ok := new(big.Int).SetString(string(text), 10)
			if is = ok && parsed.IsInt64(); is {
				n = parsed.Int64()
			}
		}
		if !is {
			return Row{}, fmt.Errorf("column %s of the row's number is %v", t.Schema.Columns[term.Column].Name, values[term.Column])
		}
		r.Number += (n - term.Minus) * term.Times
	}
	return r, nil
}

// Counts tells how often every row number is there: proof that each row arrived exactly once.
func (t *Table) Counts() map[int64]int { return count(t.Rows) }

func count(found []Row) map[int64]int {
	counts := make(map[int64]int)
	for _, r := range found {
		counts[r.Number]++
	}
	return counts
}

// buckets groups the rows of a range as loader.Counter does, in the order of their numbers.
func (t *Table) buckets(g loader.Grouping) []loader.Bucket {
	found := make(map[int64]loader.Bucket)
	for _, r := range t.Rows {
		if r.Number < g.First || g.Last < r.Number {
			continue
		}
		offset := (r.Number - g.First) % g.Size
		o := big.NewInt(offset)
		b := loader.Bucket{
			Number: (r.Number - g.First) / g.Size, Rows: 1, Min: offset, Max: offset, Sum: o, Squares: new(big.Int).Mul(o, o),
		}
		if g.Mix != nil {
			b.Mix = big.NewInt(g.Mix.Of(offset))
		}
		if g.Lengths {
			b.Lengths = t.lengths(r)
		}
		if others, is := found[b.Number]; is {
			b.Add(others)
		}
		found[b.Number] = b
	}
	return slices.SortedFunc(maps.Values(found), func(a, b loader.Bucket) int { return cmp.Compare(a.Number, b.Number) })
}

// lengths returns those of the variable columns.
func (t *Table) lengths(r Row) (all []int64) {
	for i, c := range t.Schema.Columns {
		if c.Type.Variable() {
			value, _ := r.Values[i].([]byte)
			all = append(all, int64(len(value)))
		}
	}
	return all
}
