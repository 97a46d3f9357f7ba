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

// maxValueBytes is the longest VARCHAR2 or RAW there is, with MAX_STRING_SIZE = EXTENDED; 4000 and 2000 without.
const maxValueBytes = 32767

// dialect is Oracle's SQL. Every number is read as its digits, and dates in a format of their own: of what the two
// drivers make of NUMBER, DATE and TIMESTAMP no two things are alike. VSIZE counts bytes of texts and of RAW.
//
// The difference of two timestamps is an interval, whose fields are whole numbers but for the seconds, and those are exact.
// That of two dates would be a fraction of a day, which is not.
func dialect() sqlload.Dialect {
	return sqlload.Dialect{
		Quote: `"`, Upper: true, Divide: "TRUNC(%s / %d)", Modulo: "MOD(%s, %d)", Digits: "TO_CHAR(%s)",
		TextNumber: "TO_NUMBER(%s)", Dual: " FROM DUAL", TextLength: "VSIZE", BytesLength: "VSIZE",
		TimeNumber: microsSince1970, TimeLiteral: "TIMESTAMP '%s'", Leading: true,
		MaxList: 1000, // ORA-01795
		Reads: map[rows.Type]string{
			rows.Int64: "TO_CHAR(%s)", rows.Date: "TO_CHAR(%s, '" + secondsMask + "')", rows.Timestamp: "TO_CHAR(%s, '" + microsMask + "')",
			rows.Decimal: "TO_CHAR(%s, 'TM9', " + withPoint + ")",
		},
	}
}

// How dates and timestamps are written and read as text.
const (
	secondsMask = "YYYY-MM-DD HH24:MI:SS"
	microsMask  = secondsMask + ".FF6"
)

// withPoint makes a conversion's decimal point a point. It is the session's otherwise: a comma where the client's country,
// NLS_LANG or --set has one.
const withPoint = "'NLS_NUMERIC_CHARACTERS=''.,'''"

// microsSince1970 is a timestamp's microseconds.
const microsSince1970 = "(EXTRACT(DAY FROM (%[1]s - " + year1970 + ")) * 86400000000 + EXTRACT(HOUR FROM (%[1]s - " + year1970 +
	")) * 3600000000 + EXTRACT(MINUTE FROM (%[1]s - " + year1970 + ")) * 60000000 + EXTRACT(SECOND FROM (%[1]s - " + year1970 + ")) * 1000000)"

const year1970 = "TIMESTAMP '1970-01-01 00:00:00'"

// statements writes the SQL about one table. It is pure; Explain and the loader share it.
type statements struct {
	sqlload.Statements
	method     string
	options    options
	primaryKey bool
}

// statementsFor plans the statements before the server was asked. table is schema.name, or a name alone.
func statementsFor(table string, s rows.Schema, method string, o options) statements {
	d := dialect()
	schema, _, found := strings.Cut(strings.ToUpper(table), ".")
	if !found {
		schema = ""
	}
	return statements{
		Statements: sqlload.Statements{Dialect: d, Schema: s, Table: d.Identifier(table), Claims: claimsTable(schema)},
		method:     method, options: o,
	}
}

// claimsTable is the claim table in a schema, quoted.
func claimsTable(schema string) string {
	return qualified(schema, strings.ToUpper(sqlload.ClaimsTable))
}

// qualified quotes schema and name as the catalog has them; schema may be empty.
func qualified(schema, name string) string {
	if schema == "" {
		return `"` + name + `"`
	}
	return `"` + schema + `"."` + name + `"`
}

// literal quotes a text. Oracle knows no backslash escapes.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// columnType is the server's type for a column. Lengths count bytes whatever NLS_LENGTH_SEMANTICS says, and timestamps
// have no time zone, or the session's would move them.
func columnType(c rows.Column) string {
	switch c.Type {
	case rows.Int64:
		return "NUMBER(19)"
	case rows.Decimal:
		return fmt.Sprintf("NUMBER(%d,%d)", c.Digits, c.Scale)
	case rows.Date:
		return "DATE"
	case rows.Timestamp:
		return "TIMESTAMP(6)"
	case rows.Bytes:
		return fmt.Sprintf("RAW(%d)", lengthOf(c))
	default:
		return fmt.Sprintf("VARCHAR2(%d BYTE)", lengthOf(c))
	}
}

// lengthOf is what a variable column declares.
func lengthOf(c rows.Column) int { return max(c.MaxBytes, c.Declared, 1) }

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
	return fmt.Sprintf("COMMENT ON TABLE %s IS %s", s.Table, literal(loader.MadeBy))
}

// dropTable leaves nothing in the recycle bin, where the space of a recreated table would stay taken.
func (s statements) dropTable() string { return "DROP TABLE " + s.Table + " PURGE" }

// truncateTable empties the table and gives its space back. As all DDL it commits, and nothing brings the rows back.
func (s statements) truncateTable() string { return "TRUNCATE TABLE " + s.Table }

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

// selectBatch counts the rows of a batch that are there, with the smallest and the largest of their numbers.
func (s statements) selectBatch(r loader.Ref) string {
	return s.SelectSpan(loader.KeyRange{First: r.First, Last: r.First + r.Rows - 1})
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
