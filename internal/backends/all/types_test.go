package all_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// server is one whose types are listed. What has run there is for a person to say: the tests of every type, TestTables,
// TestTypes and TestTypesInMySQL, run where a server is real.
type server struct{ title, url, tried string }

var servers = []server{
	{"PostgreSQL; YugabyteDB has the same and was not run", "postgres://h/d", "real server"},
	{"MySQL, MariaDB, TiDB, OceanBase", "mysql://h/d", "real server"},
	{"Databend", "databend://h/d", "real server"},
	{"S3 objects, as pyarrow and DuckDB read them", "s3://bucket/prefix", "real server"},
	{"Oracle", "oracle://u@h/d", "stand-in"},
	{"Doris", "doris://h/d", "stand-in"},
	{"Redshift", "redshift://h/d", "not run"},
	{"SingleStore", "singlestore://h/d", "not run"},
}

const typesHead = `# Types

Which types of [datasets](DATASETS.md) each database and format takes, and what has been tested. A test writes this page
from the type tables of the back-ends.

- **real server**: values of every kind and NULLs went in and came back unchanged, and their sums were compared;
- **stand-in**: the same with a server of our own, written from the manual;
- **not run**: written from the manual; no server was available.

The commands inspect and push --like have been tried on real servers of the first three and on the stand-ins of Oracle and
Doris, and know no others.

A number after *refused* refers to a reason below. Compressed formats take what the plain ones take. *Column* is the type in
a new table. An existing column may also be

- PostgreSQL: varchar(n) or text for a char, an existing type for an enum, json with ` + "`sql: json`" + `; numeric without digits;
- MySQL and its family: a wider integer, or a narrower one if all values fit; any text for json, enum and char; BINARY(16)
  by ` + "`load-data`" + `, or MariaDB's UUID, for a uuid;
- Databend: a wider integer of the same sign;
- Doris: a wider integer, or a TINYINT if all values fit; any text for json, enum, char and uuid;
- anywhere ` + "`sql: T`" + `, a type that only the server knows: in formats of text.

In MySQL a timestamptz is from 1970 to 2038, and a decimal has at most 30 digits after the point. OceanBase's LOAD DATA reads
an empty text in the last column as NULL, so a run whose last column may have either is refused. PostgreSQL needs pgvector
for vectors; of MySQL's family only MySQL, by load-data, and TiDB have them, the latter with a vector index only where TiFlash
is, which was not run. Databend takes vectors that are NULL in Parquet only by stage-load.

The elements of arrays are numbers of up to 18 digits, booleans, texts, uuids, dates, timestamps, and raw bytes in Parquet
and to PostgreSQL. MySQL and its family keep arrays as JSON. In csv they are texts, as PostgreSQL reads them.

In Oracle an existing NUMBER of any length takes integers whose values fit, and a VARCHAR2 takes char, enum, json and uuid.
An empty text is NULL there, so a column may have one or the other; -0 is refused, since the server makes 0 of it.
`

// TestTypes writes docs/TYPES.md from what the program refuses and makes.
func TestTypes(t *testing.T) {
	registry, err := all.Drivers()
	require.NoError(t, err)

	page := &typesPage{T: t}
	page.WriteString(typesHead)
	for _, s := range servers {
		page.server(registry, s)
	}
	page.WriteString("\n## Why\n\n")
	for i, reason := range page.reasons {
		fmt.Fprintf(page, "%d. %s\n", i+1, reason)
	}
	golden.Equal(t, "../../../../docs/TYPES.md", page.String()) // from testdata
}

// typesPage is the page so far.
type typesPage struct {
	*testing.T
	strings.Builder
	reasons []string
}

func (p *typesPage) server(registry *loader.Registry, s server) {
	target, err := loader.ParseTarget(s.url)
	require.NoError(p, err)
	target.Table = "t"
	driver, known := registry.Lookup(target.Scheme)
	require.True(p, known, s.url)

	var caps loader.Caps
	var first loader.Target
	var formats []batch.Format
	for _, m := range driver.Methods() {
		tried := target
		tried.Method = m.Name
		of, wrong := driver.Check(tried)
		if wrong != nil { // not for this flavour, or by way of a bucket
			via, err := loader.ParseTarget("s3://bucket/prefix")
			require.NoError(p, err)
			tried.Via = &via
			of, wrong = driver.Check(tried)
		}
		if wrong != nil {
			continue
		}
		if len(formats) == 0 {
			first, caps = tried, of
		}
		formats = append(formats, of.Formats...)
	}
	formats = slices.DeleteFunc(formats, func(f batch.Format) bool { _, how := f.Compression(); return how != "" })
	if target.Scheme == "s3" { // what MySQL alone reads
		formats = slices.DeleteFunc(formats, func(f batch.Format) bool { return f == batch.TSV })
	}
	slices.Sort(formats)
	formats = slices.Compact(formats)

	fmt.Fprintf(p, "\n## %s\n\n", s.title)
	if caps.NoTextNulls {
		p.WriteString("NULLs are not run. By COPY and LOAD DATA they are refused in columns of texts that may hold a backslash.\n\n")
	}
	fmt.Fprintf(p, "| type | column |%s\n|---|---|%s\n", cells(formats), strings.Repeat("---|", len(formats)))
	require.NotEmpty(p, formats, s.title)
	for _, c := range backendtest.EveryType().Columns[3:] {
		p.row(s, caps, formats, c, p.column(driver, first, c))
	}
}

func cells(formats []batch.Format) (text string) {
	for _, f := range formats {
		text += " " + string(f) + " |"
	}
	return text
}

// row writes what is of a column's type.
func (p *typesPage) row(s server, caps loader.Caps, formats []batch.Format, c rows.Column, column string) {
	name := dataset.TypeName(c)
	if c.Type == rows.Wide && c.Scale == 0 || c.Type == rows.Arrays && c.Of.Type != rows.Text {
		return
	}
	c.Nullable = false // see typesHead
	fmt.Fprintf(p, "| %s | %s |", name, column)
	for _, f := range formats {
		one := rows.Schema{Columns: []rows.Column{c}}
		err := cmp.Or(encode.Carries(f, one), caps.Reads(f, one))
		switch {
		case slices.Contains(caps.Lacks, c.Type):
			fmt.Fprintf(p, " refused %d |", p.reason("The database has no column that gives the values back as they were sent, or none has been tried."))
		case err != nil:
			fmt.Fprintf(p, " refused %d |", p.reason(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "encode: "), " of column "+c.Name, "")))
		case c.Type == rows.Float32s && f == batch.Values:
			fmt.Fprintf(p, " refused %d |", p.reason("MySQL's VECTOR takes no text: take load-data. TiDB's does."))
		default:
			fmt.Fprintf(p, " %s |", s.tried)
		}
	}
	p.WriteString("\n")
}

// reason returns the number of a reason.
func (p *typesPage) reason(text string) int {
	text = strings.ToUpper(text[:1]) + text[1:]
	if i := slices.Index(p.reasons, text); i >= 0 {
		return i + 1
	}
	p.reasons = append(p.reasons, text)
	return len(p.reasons)
}

// definition is that of the column of column.
var definition = regexp.MustCompile(
	`(?i)\bthe_column\W? (\w[\w ]*?(?:\([^)]*\))?[\w ]*?(?:\[\])?)(?: NOT NULL| NULL| CHECK|[,)\n]|$)`)

// column returns the type in the CREATE TABLE that a run would send.
func (p *typesPage) column(driver loader.Driver, target loader.Target, c rows.Column) string {
	caps, err := driver.Check(target)
	require.NoError(p, err)
	if slices.Contains(caps.Lacks, c.Type) {
		return "—"
	}
	c.Name, c.Nullable = "the_column", false
	schema := rows.Schema{
		Dataset: "t", Number: []rows.Term{{Times: 1}},
		Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, c},
	}
	contract := loader.Contract{Method: target.Method, BatchRows: 1}
	prepared := loader.Preparation{Run: "r", Schema: schema, Contract: contract, Create: loader.CreateIfMissing}
	for _, statement := range driver.Explain(target, prepared) {
		made := definition.FindStringSubmatch(statement.Text)
		if made != nil {
			return "`" + made[1] + "`"
		}
	}
	return "—"
}
