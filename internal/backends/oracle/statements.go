package oracle

import (
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// statements writes the SQL about one table, for the loader and for Explain.
type statements struct {
	sqlload.Statements
	method     string
	options    options
	primaryKey bool
}

// statements are those about the table of s.
func (l *opened) statements(s *sqlload.State) statements {
	return statements{Statements: s.Statements, method: l.method, options: l.options, primaryKey: s.Want.PrimaryKey}
}

// planned are the statements before the table is located. table is schema.name or name.
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

// createClaims creates the claim table. In a compressed unit a claim would lock its neighbours.
func (s statements) createClaims() string {
	columns := sqlload.ClaimColumns("VARCHAR2(64)", "NUMBER(19)", "TIMESTAMP DEFAULT SYSTIMESTAMP NOT NULL")
	return "CREATE TABLE " + s.Claims + " (" + strings.Join(columns, ", ") + ") NOCOMPRESS"
}

// createRuns creates the table of the runs' rows.
func (s statements) createRuns() string {
	columns := sqlload.RunColumns("VARCHAR2(255)", "VARCHAR2(255)", "NUMBER(19)")
	return "CREATE TABLE " + s.Runs() + " (" + strings.Join(columns, ", ") + ") NOCOMPRESS"
}

// claim inserts the claim of a batch from the run's row, with binds for run, number, first key and rows, and for run,
// part and epoch of the row: with literals the server would parse and cache a statement for each batch.
//
// An INSERT … SELECT reads as of the time it was opened (READ COMMITTED), and the manuals do not say whether one that
// waits for its table's lock is older than the wait. So the lock is taken by a statement before it, in the same round
// trip: then the row is read as the fence has left it. No server has run this block here; go-ora's own tests execute
// such blocks.
func (s statements) claim() string {
	return "BEGIN LOCK TABLE " + s.Claims + " IN ROW EXCLUSIVE MODE; " +
		"INSERT INTO " + s.Claims + " (run, batch, first_key, row_count) SELECT :1, :2, :3, :4 FROM " + s.Runs() +
		" WHERE run = :5 AND part = :6 AND epoch = :7 AND state = 'open'; " +
		fmt.Sprintf("IF SQL%%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-%d, 'the run is not open for this process'); END IF; END;",
			codeMayNotWrite)
}

// insert inserts rows, with a bind for every column. A decimal is bound as the whole number in the batch, and the
// server divides it, exactly: NUMBER is in base 100. No float of a driver and no decimal point of a session is
// involved.
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

// lockAlone locks a table until the transaction ends. It waits no longer than it is told, since the claims of other
// runs wait behind it.
func lockAlone(table string, wait time.Duration) string {
	return fmt.Sprintf("LOCK TABLE %s IN EXCLUSIVE MODE WAIT %d", table, max(int(wait.Seconds()), 1))
}

// useHints enables the hints that fast and direct depend on. Autonomous databases ignore hints by default.
const useHints = "ALTER SESSION SET OPTIMIZER_IGNORE_HINTS = FALSE"
