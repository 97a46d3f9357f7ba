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

// dialect is Doris' sqlload.Dialect. The SUM of BIGINT is BIGINT and wraps around silently, which the squares of a large
// batch's offsets would do; LARGEINT has 128 bits. LENGTH counts bytes.
//
// MICROSECONDS_DIFF subtracts days and times of day as integers of 64 bits, without a time zone (vdatetime_value.h).
// MICROSECOND_TIMESTAMP and UNIX_TIMESTAMP read the column in the session's zone; the latter returns a DECIMAL. A text
// that is compared with a column of times is converted when the statement is planned, with its own number of decimals:
// hence six in both. Rows are sorted by the key, so a condition on its first column narrows what is read.
func dialect() sqlload.Dialect {
	return sqlload.Dialect{
		Types: types, Keys: sqlload.OnlyPrimary, Fold: true,
		Quote: "`", Divide: "%s DIV %d", TextNumber: "CAST(%s AS BIGINT)", Decimal: "DECIMAL(38, 0)", Wide: "LARGEINT",
		HexNumber:  "CAST(CONV(RIGHT(%s, 15), 16, 10) AS BIGINT)",
		TimeNumber: "MICROSECONDS_DIFF(%s, '1970-01-01 00:00:00.000000')", TimeLiteral: "'%s'", Leading: true,
		TextLength: "LENGTH", BytesLength: "LENGTH",
	}
}

// tableName is an unquoted table with its database.
type tableName struct{ schema, table string }

// String returns the name as Table.Name and Preparation.MayDrop have it.
func (n tableName) String() string { return n.schema + "." + n.table }

func (n tableName) quoted() string { return quote(n.schema) + "." + quote(n.table) }

// A backslash escapes: NO_BACKSLASH_ESCAPES is off by default, and the sessions do not set it.
var quote, literal = sqlload.Backtick, sqlload.EscapedLiteral

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
	return shape{unique: len(p.Schema.Primary) > 0, buckets: o.Buckets, replication: o.Replication, properties: o.properties()}
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
	names := s.LeadingNames()
	columns := make([]string, len(names))
	for _, c := range s.Schema.Columns {
		text := "  " + s.Define(c)
		if i := slices.Index(names, c.Name); i >= 0 {
			columns[i] = text
		} else {
			columns = append(columns, text)
		}
	}
	model := "DUPLICATE"
	if h.unique {
		model = "UNIQUE"
	}
	text := fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s\n)\n%s KEY(%s)\nCOMMENT '%s'\n", s.Table,
		strings.Join(columns, ",\n"), model, s.LeadingColumns(), loader.MadeBy) +
		fmt.Sprintf("DISTRIBUTED BY HASH(%s) BUCKETS %d", quote(names[0]), h.buckets)
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

// types are Doris'. Lengths are in bytes, and a key must not be a STRING. information_schema calls every decimal number
// decimalv3, whatever it was made as.
var types = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", Also: []string{"largeint"}, SQL: "BIGINT"},
	{Ours: rows.Date, Name: "date", Also: []string{"datev2"}, SQL: "DATE"},
	{Ours: rows.Timestamp, Name: "datetime", Also: []string{"datetimev2"}, SQL: "DATETIME(6)", Fits: sqlload.SecondDigits(0)},
	{Ours: rows.Decimal, Name: "decimal", Also: []string{"decimalv3"}, SQL: "DECIMAL(%d, %d)", Fits: sqlload.SameScale},
	{Ours: rows.Text, Name: "varchar", SQL: "VARCHAR(%d)", Most: 65533, Fits: sqlload.LongEnough},
	{Ours: rows.Text, Name: "string", Also: []string{"text"}, SQL: "STRING"},
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
