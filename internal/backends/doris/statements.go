package doris

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
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
	return shape{unique: len(p.Schema.Primary) > 0, buckets: o.Buckets, replication: o.Replication, properties: o.properties()}
}

// fill completes the shape from the number of alive backends. If that is not known, the server chooses the replicas:
// three, or an error with the number of backends that it has.
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
// the same value in up to four rows, of which a UNIQUE KEY would keep one. Doris requires that the key's columns are
// the table's first; loads name their columns, so nothing depends on the order. One column is enough to distribute
// rows, and keeps the lines of an order together.
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

// source is what a statement reads.
type source struct {
	uri    string
	access objstore.Access
	format batch.Format
}

// alternatives writes names in one folder as folder{a,b,…}, and a single name as it is. Releases from 4.1 on ask for
// each by HEAD (apache/doris#60414); earlier ones list the run's folder, which is what precedes the first wildcard.
func alternatives(folder string, names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = strings.TrimPrefix(n, folder)
	}
	return folder + "{" + strings.Join(short, ",") + "}"
}

// loadObjects returns the statement that loads a group. Columns of CSV are c1, c2, … of type STRING, those of Parquet
// have the file's types: each is cast to the table's.
func (s statements) loadObjects(label string, from source) string {
	columns := make([]string, len(s.Schema.Columns))
	for i, c := range s.Schema.Columns {
		name := fmt.Sprintf("c%d", i+1)
		if from.format == batch.Parquet {
			name = quote(c.Name)
		}
		columns[i] = fmt.Sprintf("CAST(%s AS %s)", name, castType(c))
	}
	return fmt.Sprintf("INSERT INTO %s%s (%s) SELECT %s FROM S3(%s)",
		s.Table, withLabel(label), s.Columns(s.Schema), strings.Join(columns, ", "), from.properties())
}

// castType is a column's type without the length of a text: a cast would cut a value that is too long, where the table
// refuses it.
func castType(c rows.Column) string {
	if c.Type.IsText() {
		return "STRING"
	}
	return dialect().SQL(c)
}

// properties returns those of the table function.
func (f source) properties() string {
	a, region := f.access, cmp.Or(f.access.Region, "us-east-1")
	all := map[string]string{
		"uri": f.uri, "s3.endpoint": cmp.Or(a.Endpoint, "https://s3."+region+".amazonaws.com"), "s3.region": region,
		"s3.access_key": a.KeyID, "s3.secret_key": a.Secret.Reveal(), "use_path_style": fmt.Sprint(a.PathStyle),
	}
	if a.Token != "" {
		all["s3.session_token"] = a.Token.Reveal()
	}
	all["format"] = "parquet"
	if f.format != batch.Parquet {
		// The bytes themselves, not \x01: Doris' two parsers differ in how often they read a property's backslashes.
		all["format"], all["column_separator"], all["line_delimiter"] = "csv", "\x01", "\x02"
	}
	for name, value := range all {
		all[name] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
	}
	return properties(all)
}
