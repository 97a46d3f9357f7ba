package doris

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// statements writes the SQL about one table.
type statements struct{ sqlload.Statements }

func newStatements(n tableName, s rows.Schema) statements {
	return statements{sqlload.Statements{Dialect: dialect(), Schema: s, Table: n.quoted()}}
}

// shape is what CREATE TABLE specifies besides the columns.
type shape struct {
	unique      bool // UNIQUE KEY in place of DUPLICATE KEY
	buckets     int64
	replication int64             // 0: the server's default
	properties  map[string]string // others
}

// Defaults of a shape.
const (
	bucketsPerBackend = 4
	bucketsUnknown    = 16
	maxReplication    = 3
)

// plannedShape returns what the options specify of a shape.
func plannedShape(o options, p loader.Preparation) shape {
	return shape{unique: p.PrimaryKey, buckets: o.Buckets, replication: o.Replication, properties: o.properties()}
}

// fill completes the shape from the number of alive backends. If that is not known, the server chooses the replicas: three,
// or an error with the number of backends that it has.
func (h shape) fill(alive int64) shape {
	if h.replication == 0 {
		h.replication = min(max(alive, 0), maxReplication)
	}
	if h.buckets == 0 {
		h.buckets = cmp.Or(bucketsPerBackend*max(alive, 0), bucketsUnknown)
	}
	return h
}

// createTable makes the target table. Its key is all that a row's number is read from: the first column of lineitem has
// the same value in up to four rows, of which a UNIQUE KEY would keep one. Doris requires that the key's columns are the
// table's first; loads name their columns, so nothing depends on the order. One column is enough to distribute rows, and
// keeps the lines of an order together.
func (s statements) createTable(h shape) string {
	var key, rest []string
	for i, c := range s.Schema.Columns {
		if !slices.ContainsFunc(s.Schema.Number, func(t rows.Term) bool { return t.Column == i }) {
			rest = append(rest, "  "+s.Define(c))
		}
	}
	for _, t := range s.Schema.Number {
		key = append(key, "  "+s.Define(s.Schema.Columns[t.Column]))
	}
	model := "DUPLICATE"
	if h.unique {
		model = "UNIQUE"
	}
	text := fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s\n)\n%s KEY(%s)\nCOMMENT '%s'\n", s.Table,
		strings.Join(append(key, rest...), ",\n"), model, s.KeyColumns(s.Schema), loader.MadeBy) +
		fmt.Sprintf("DISTRIBUTED BY HASH(%s) BUCKETS %d", quote(s.Schema.Key().Name), h.buckets)
	all := map[string]string{}
	maps.Copy(all, h.properties)
	if h.replication > 0 {
		all["replication_num"] = fmt.Sprint(h.replication)
	}
	if len(all) > 0 {
		text += "\nPROPERTIES (" + properties(all) + ")"
	}
	return text
}

// properties writes "name" = "value" pairs in the order of their names. No value contains a quote.
func properties(all map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, fmt.Sprintf(`"%s" = "%s"`, name, all[name]))
	}
	return strings.Join(pairs, ", ")
}

// setProperty changes one property of the table; Doris takes one at a time.
func (s statements) setProperty(name, value string) string {
	return fmt.Sprintf("ALTER TABLE %s SET (%s)", s.Table, properties(map[string]string{name: value}))
}

// insertHead returns the part of an INSERT before a body of batch.Values.
func (s statements) insertHead(label string) string {
	return fmt.Sprintf("INSERT INTO %s%s (%s) VALUES ", s.Table, withLabel(label), s.Columns(s.Schema))
}

// insertParameters returns an INSERT of n rows to be prepared. One with a label cannot be.
func (s statements) insertParameters(n int) string {
	row := "(?" + strings.Repeat(", ?", len(s.Schema.Columns)-1) + ")"
	return s.insertHead("") + row + strings.Repeat(", "+row, n-1)
}

func withLabel(label string) string {
	if label == "" {
		return ""
	}
	return " WITH LABEL " + quote(label)
}
