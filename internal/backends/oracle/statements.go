package oracle

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// statements writes the SQL about one table, for the loader and for Explain.
type statements struct {
	sqlload.Statements
	method  string
	options options
}

// statements are those about the table of s.
func (l *opened) statements(s *sqlload.State) statements {
	return statements{Statements: s.Statements, method: l.method, options: l.options}
}

// newStatements are the statements before the table is located. table is schema.name or name.
func newStatements(table string, s rows.Schema) sqlload.Statements {
	d := dialect()
	schema, _, found := strings.Cut(strings.ToUpper(table), ".")
	if !found {
		schema = ""
	}
	return sqlload.Statements{Dialect: d, Schema: s, Table: d.Identifier(table), Claims: claimsTable(schema)}
}

// claimsTable is the claim table in a schema, quoted.
func claimsTable(schema string) string {
	return sqlload.Qualified(schema, strings.ToUpper(sqlload.ClaimsTable))
}

// createTable creates the target. Values that may be empty are nullable, since an empty text is NULL in Oracle.
//
// Fast Ingest needs a segment from the start and, before 23ai, no compression, which is the default of Autonomous Data
// Warehouse (ORA-62146).
func (s statements) createTable() string {
	var columns []string
	for _, c := range s.Schema.Columns {
		name := s.Column(c.Name)
		text := name + " " + s.SQL(c)
		if !c.Nullable && !c.TakesNull && (c.Derived || !c.Type.Variable()) {
			text += " NOT NULL"
		}
		text += s.CheckOf(c)
		if c.JSON {
			text += " CHECK (" + name + " IS JSON)"
		}
		columns = append(columns, text)
	}
	keys, _ := s.Constraints()
	columns = append(columns, keys...)
	text := "CREATE TABLE " + s.Table + " (" + strings.Join(columns, ", ") + ")"
	if s.method == methodFast {
		text += " SEGMENT CREATION IMMEDIATE NOCOMPRESS MEMOPTIMIZE FOR WRITE"
	}
	return text
}

// createLike creates an empty table with the types and the NOT NULL of another one's columns.
func (s statements) createLike(like loader.TableName) string {
	from := sqlload.Qualified(like.Schema, like.Name)
	return fmt.Sprintf("CREATE TABLE %s AS SELECT %s FROM %s WHERE 1 = 0", s.Table, s.Columns(s.Schema), from)
}

// addKeys adds the keys to a table that has none.
func (s statements) addKeys() (all []string) {
	keys, _ := s.Constraints()
	for _, key := range keys {
		all = append(all, "ALTER TABLE "+s.Table+" ADD "+key)
	}
	return all
}

func (s statements) markTable(comment string) string {
	return fmt.Sprintf("COMMENT ON TABLE %s IS %s", s.Table, sqlload.Literal(comment))
}

// converted are the types that are bound in another form: the digits of a number that an int64 does not hold, and the
// bits of a floating-point number, byte 0 with the sign (PL/SQL Packages, "CAST_TO_BINARY_DOUBLE"), for which go-ora has
// no bind. What that function makes of a NULL is not said: it is sent as a NaN, which is equal to itself (SQL Language
// Reference, "Numeric Values").
var converted = map[rows.Type]string{
	rows.Uint64: "TO_NUMBER(%s)", rows.Wide: "TO_NUMBER(%s)",
	rows.Float64: "NULLIF(UTL_RAW.CAST_TO_BINARY_DOUBLE(%s), BINARY_DOUBLE_NAN)",
	rows.Float32: "NULLIF(UTL_RAW.CAST_TO_BINARY_FLOAT(%s), BINARY_FLOAT_NAN)",
}

// insert inserts rows, with a bind for every column. A decimal is bound as the whole number in the batch, and the
// server divides it, exactly: NUMBER is in base 100, and has 20 such digits. No float of a driver and no decimal point
// of a session is involved.
func (s statements) insert() string {
	binds := make([]string, len(s.Schema.Columns))
	for i, c := range s.Schema.Columns {
		binds[i] = fmt.Sprintf(":%d", i+1)
		if how, is := converted[c.Type]; is {
			binds[i] = fmt.Sprintf(how, binds[i])
		}
		if c.Type.IsDecimal() {
			binds[i] += " / 1" + strings.Repeat("0", c.Scale)
		}
	}
	return s.into() + " VALUES (" + strings.Join(binds, ", ") + ")"
}

// hint is the hint that the method depends on.
func (s statements) hint() string {
	return map[string]string{
		methodFast: "/*+ MEMOPTIMIZE_WRITE */ ", methodDirect: "/*+ APPEND_VALUES */ ",
	}[s.method]
}

// into is an INSERT up to its rows.
func (s statements) into() string {
	table := s.Table
	if s.options.Partition != "" {
		table += " PARTITION (" + s.Identifier(s.options.Partition) + ")"
	}
	return fmt.Sprintf("INSERT %sINTO %s (%s)", s.hint(), table, s.Columns(s.Schema))
}
