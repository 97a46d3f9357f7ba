package oracle

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// lockWait is, in seconds, how long the server lets a LOCK TABLE wait for those who still write. It is shorter than the
// minute that the engine gives an answer at least: whoever gave up sooner than the server would leave a process there that
// stays in the queue for the lock, and behind it every INSERT of the other workers. Who asked in vain asks again.
const lockWait = 45

// statements writes the SQL about one table. It is pure; Explain and the loader share it.
type statements struct {
	sqlload.Statements
	method     string
	options    options
	primaryKey bool
}

// statements are those about the table that Prepare has settled, or is about to.
func (l *opened) statements(s *sqlload.State) statements {
	return statements{Statements: s.Statements, method: l.method, options: l.options, primaryKey: s.Want.PrimaryKey}
}

// planned are the statements before the server was asked. table is schema.name, or a name alone.
func planned(table string, s rows.Schema) sqlload.Statements {
	d := dialect()
	schema, _, found := strings.Cut(strings.ToUpper(table), ".")
	if !found {
		schema = ""
	}
	return sqlload.Statements{Dialect: d, Schema: s, Table: d.Identifier(table), Claims: claimsTable(schema)}
}

// claimsTable is the claim table in a schema, quoted.
func claimsTable(schema string) string {
	return qualified(schema, strings.ToUpper(sqlload.ClaimsTable))
}

// createTable makes the target. Values that may be empty stay nullable, since to Oracle an empty text is a NULL.
//
// Fast Ingest wants a segment from the start, and before 23ai no compression, which is the default of the Autonomous
// Data Warehouse (ORA-62146).
func (s statements) createTable() string {
	var columns []string
	for _, c := range s.Schema.Columns {
		name := s.Identifier(c.Name)
		text := name + " " + columnType(c)
		if c.Derived || !c.Type.Variable() {
			text += " NOT NULL"
		}
		if c.JSON {
			text += " CHECK (" + name + " IS JSON)"
		}
		columns = append(columns, text)
	}
	if s.primaryKey {
		columns = append(columns, "PRIMARY KEY ("+s.KeyColumns(s.Schema)+")")
	}
	text := "CREATE TABLE " + s.Table + " (" + strings.Join(columns, ", ") + ")"
	if s.method == methodFast {
		text += " SEGMENT CREATION IMMEDIATE NOCOMPRESS MEMOPTIMIZE FOR WRITE"
	}
	return text
}

func (s statements) markTable() string {
	return fmt.Sprintf("COMMENT ON TABLE %s IS %s", s.Table, sqlload.Literal(loader.MadeBy))
}

// createClaims makes the claim table. Not compressed, since in a compressed unit one claim would lock its neighbours.
func (s statements) createClaims() string {
	return "CREATE TABLE " + s.Claims + " (run VARCHAR2(64) NOT NULL, batch NUMBER(19) NOT NULL, first_key NUMBER(19) NOT NULL, " +
		"row_count NUMBER(19) NOT NULL, PRIMARY KEY (run, batch)) NOCOMPRESS"
}

// claim inserts the claim of a batch: its run, number, first key and rows are bound, in this order. As literals every
// claim would be a new statement, which the server parses anew and keeps among those of others.
func (s statements) claim() string {
	return "INSERT INTO " + s.Claims + " (run, batch, first_key, row_count) VALUES (:1, :2, :3, :4)"
}

// insert is the statement that takes rows, one or an array of them, with a bind for every column. That of a decimal is the
// whole number that a batch holds, and the server divides: NUMBER counts in powers of a hundred, so that this is exact, and
// neither a float of the driver nor a comma of the session has a part in it.
func (s statements) insert() string {
	binds := make([]string, len(s.Schema.Columns))
	for i, c := range s.Schema.Columns {
		binds[i] = fmt.Sprintf(":%d", i+1)
		if c.Type == rows.Decimal {
			binds[i] += " / 1" + strings.Repeat("0", c.Scale)
		}
	}
	return s.into() + " VALUES (" + strings.Join(binds, ", ") + ")"
}

// into is an INSERT up to its rows.
func (s statements) into() string {
	hint := map[string]string{
		methodFast: "/*+ MEMOPTIMIZE_WRITE */ ", methodDirect: "/*+ APPEND_VALUES */ ", methodCloudCopy: "/*+ APPEND */ ",
	}[s.method]
	table := s.Table
	if s.options.partition != "" {
		table += " PARTITION (" + s.Identifier(s.options.partition) + ")"
	}
	return fmt.Sprintf("INSERT %sINTO %s (%s)", hint, table, s.Columns(s.Schema))
}

// lockTable waits until nobody has uncommitted rows in the table any more, and keeps others from adding some.
func (s statements) lockTable() string {
	return fmt.Sprintf("LOCK TABLE %s IN SHARE MODE WAIT %d", s.Table, lockWait)
}

// lockClaims keeps everybody else out of the claim table until the transaction ends.
func (s statements) lockClaims() string {
	return fmt.Sprintf("LOCK TABLE %s IN EXCLUSIVE MODE WAIT %d", s.Claims, lockWait)
}

// useHints makes the server look at the hints on which fast, direct and cloud-copy rest. Autonomous databases ignore
// hints unless they are told not to; other servers may not know the parameter at all.
const useHints = "ALTER SESSION SET OPTIMIZER_IGNORE_HINTS = FALSE"

func (s statements) hinted() bool {
	return s.method == methodFast || s.method == methodDirect || s.method == methodCloudCopy
}

// sessionSetup is what a loading session says first: as every connection --set, and then what its method rests on.
func (s statements) sessionSetup(settings []loader.Setting) []string {
	all := alterSession(settings)
	if s.hinted() {
		all = append(all, useHints)
	}
	return all
}
