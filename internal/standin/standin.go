// Package standin is what the stand-ins for Doris and Oracle share: tables and their rows, which may have a primary
// key or none, NULLs and UUIDs; transactions, with what they lock and wait for; the formats that loads bring;
// conditions; and the statements that verification asks, known by their shapes. No SQL is evaluated here. That the
// arithmetic in those statements is right is shown where a real server can judge it.
package standin

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
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
	Key     []string // the columns of the primary key, if there is one
	// Schema has a dataset's columns in the dataset's order, and gives a row its number. The columns of any other table
	// are taken by their types, and its rows have no numbers.
	Schema rows.Schema
	Rows   []Row // that are committed, in the order of their arrival

	keys map[string]*Transaction // of rows that are there, or were; by which open transaction, if not committed
}

// Column is a column as CREATE TABLE names it.
type Column struct {
	Name, Type string // without quotes; the type in upper case, with its length
	Nullable   bool
	Default    bool
	Virtual    bool
	Identity   string // ALWAYS or BY DEFAULT
}

// Row is a row with its number, which is 0 in a table of no dataset. Values are as loader.Fetcher returns them, in the
// schema's order; nil is NULL.
type Row struct {
	Number int64
	Values []any
}

// NewTable makes an empty table, with the schema of the dataset whose columns it has, in whatever order.
func NewTable(name string, columns []Column, key ...string) *Table {
	t := &Table{Name: name, Columns: columns, Key: key, keys: make(map[string]*Transaction)}
	for _, c := range columns {
		t.Schema.Columns = append(t.Schema.Columns, columnOf(c))
	}
	t.HoldRowsOf(datasets())
	for i, c := range t.Schema.Columns { // documents have either
		kind := t.Column(c.Name).Type
		if c.Type == rows.Bytes && (strings.Contains(kind, "CHAR") || strings.Contains(kind, "STRING")) {
			t.Schema.Columns[i].Type = rows.Text
		}
	}
	return t
}

// HoldRowsOf gives the table the first of some schemas whose columns it has, if it has those of any.
func (t *Table) HoldRowsOf(schemas []rows.Schema) {
	for _, s := range schemas {
		missing := func(c rows.Column) bool { return t.Column(c.Name) == nil }
		if len(t.Columns) == len(s.Columns) && !slices.ContainsFunc(s.Columns, missing) {
			t.Schema = s
			t.Schema.Columns = slices.Clone(s.Columns)
			return
		}
	}
}

// columnOf returns a column as a dataset would have it. Types that no dataset has are texts.
func columnOf(c Column) rows.Column {
	of := rows.Column{Name: c.Name, Type: rows.Text, MaxBytes: c.Length()}
	kind, _, _ := strings.Cut(c.Type, "(")
	switch kind {
	case "BIGINT", "INT":
		of.Type = rows.Int64
	case "NUMBER", "DECIMAL":
		of.Type, of.Digits, of.Scale = rows.Decimal, 38, 0
		_, _ = fmt.Sscanf(strings.ReplaceAll(c.Type[len(kind):], ", ", ","), "(%d,%d)", &of.Digits, &of.Scale)
		if of.Scale == 0 {
			of.Type = rows.Int64
		}
	case "DATE":
		of.Type = rows.Date
	case "TIMESTAMP", "DATETIME":
		of.Type = rows.Timestamp
	case "RAW", "VARBINARY":
		of.Type = rows.Bytes
	}
	return of
}

// Length returns the length in the column's type; 0 without one.
func (c Column) Length() (n int) {
	_, length, _ := strings.Cut(c.Type, "(")
	_, _ = fmt.Sscanf(length, "%d", &n)
	return n
}

// Index returns the place of a column in the schema, −1 for one that is not there.
func (t *Table) Index(name string) int {
	return slices.IndexFunc(t.Schema.Columns, func(c rows.Column) bool { return strings.EqualFold(c.Name, name) })
}

// keyOf returns a row's primary key. Without one, or where a part of it is NULL, a row may be there more than once.
func (t *Table) keyOf(r Row) (key string, unique bool) {
	for _, name := range t.Key {
		v := r.Values[t.Index(name)]
		if v == nil {
			return "", false
		}
		key += fmt.Sprintf("%q,", fmt.Sprint(v))
	}
	return key, len(t.Key) > 0
}

// Empty removes all rows at once.
func (t *Table) Empty() { t.Rows, t.keys = nil, make(map[string]*Transaction) }

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
		return Row{}, fmt.Errorf("a row of %d values for %d columns", len(values), len(t.Schema.Columns))
	}
	r := Row{Values: values}
	for _, term := range t.Schema.Number {
		n, is := values[term.Column].(int64)
		if text, variable := values[term.Column].([]byte); variable {
			n, is = spelt(t.Schema.Columns[term.Column], text, term.Hex)
		}
		if !is {
			name := t.Schema.Columns[term.Column].Name
			return Row{}, fmt.Errorf("column %s of the row's number is %v", name, values[term.Column])
		}
		n -= term.Minus
		if term.Stride > 0 {
			n = rows.Scatter(n, term.Stride)
		}
		r.Number += n * term.Times
	}
	return r, nil
}

// spelt returns the number that a text or a UUID spells: its digits, or the last 15 of its hexadecimal ones.
func spelt(c rows.Column, value []byte, isHex bool) (n int64, is bool) {
	const last, bits = 15, 64
	digits, base := string(value), 10
	if isHex {
		if c.Type == rows.UUID {
			digits = hex.EncodeToString(value)
		}
		digits, base = strings.ReplaceAll(digits, "-", ""), 16
		digits = digits[max(len(digits)-last, 0):]
	}
	n, err := strconv.ParseInt(digits, base, bits)
	return n, err == nil
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
		for _, m := range t.Schema.Measures() {
			if g.Measures {
				b.Measures = append(b.Measures, measured(m, t.Schema.Columns[m.Column], r.Values[m.Column]))
			}
		}
		if others, is := found[b.Number]; is {
			b.Add(others)
		}
		found[b.Number] = b
	}
	return slices.SortedFunc(maps.Values(found), func(a, b loader.Bucket) int { return cmp.Compare(a.Number, b.Number) })
}

// measured is what a value adds to a measure.
func measured(m rows.Measure, c rows.Column, value any) *big.Int {
	if text, is := value.([]byte); is && c.Type == rows.Wide && m.Of == rows.Number {
		return rows.BigOf(text)
	}
	n := big.NewInt(m.Value(value))
	if v, is := value.(int64); is && c.Type == rows.Uint64 && m.Of == rows.Number {
		n.SetUint64(uint64(v))
	}
	return n
}
