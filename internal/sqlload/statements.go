package sqlload

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// ClaimsTable is the name of the claim table in the target's schema. UnloggedClaims stands beside it for unlogged
// targets: after a crash claims must not outlive the rows they stand for.
const (
	ClaimsTable    = "terapush_claims"
	UnloggedClaims = "terapush_claims_unlogged"
)

// Batch numbers of rows in the claim table that stand for no batch. Those of Statements.reservation lie far below.
const (
	everywhere = -1 // sets a range of keys aside in all tables of the schema: none is written any more, and old ones hold
	Probe      = -2 // the claim of a probe, which is rolled back
)

// Dialect is what the SQL families write differently.
type Dialect struct {
	Quote string // the quotation mark of identifiers
	Upper bool   // names are quoted in upper case, which is how the server keeps those that nobody quotes
	Fold  bool   // names of columns that differ in the case of letters are one
	// Type is the type of a column that the table is made with.
	Type func(rows.Column) string
	// AtomicDDL says that a transaction can drop a table and make another one.
	AtomicDDL bool
	// Drop has a format of %s that removes a table; "" is DROP TABLE.
	Drop string
	// Flush writes what the server still has in memory of earlier loads, which would come in behind a TRUNCATE; "" where it
	// has nothing there.
	Flush string
	// Any has a format of %s that reads one row of a table; "" is LIMIT 1.
	Any string
	// Divide and Modulo are the quotient and the remainder of two integers, as formats of %s and %d. A Modulo of "" is
	// the operator %.
	Divide, Modulo string
	// Decimal is a type that a sum beyond 64 bits is cast to, so that it is read as text without loss.
	Decimal string
	// Digits is a format of %s that turns a number into its decimal digits, for drivers that would round it; "" where they
	// read integers as they are. Where it is given, Decimal is not used.
	Digits string
	// Reads has a format of %s for each type whose columns are not read as they are.
	Reads map[rows.Type]string
	// Hex says that Reads gives raw bytes as hexadecimal digits.
	Hex bool
	// EmptyIsNull says that the server keeps an empty text or raw value as a NULL, so nobody can tell the two apart.
	EmptyIsNull bool
	// MaxList is the most elements of an IN list; longer lists are written as several. 0: there is no bound.
	MaxList int
	// TextNumber is a format of %s that reads the digits of a text as an integer.
	TextNumber string
	// TimeNumber is a format of %s that turns a timestamp into the microseconds since 1970-01-01 00:00:00: an integer, and
	// exact in all years from 1 to 9999, which floating point is not.
	TimeNumber string
	// TimeLiteral is a format of %s that makes a timestamp of a text like 2026-01-02 03:04:05.000006, which is all that
	// the text ever looks like. Columns are compared with it, so it has their type: an index on them is used then.
	TimeLiteral string
	// Leading says that tables can be looked into by the first column of a key of several. Conditions on such keys bound
	// that column as well, beside the number, which is an expression that no index is made of.
	Leading bool
	// Dual is what stands behind a SELECT that reads from no table; "" is nothing.
	Dual string
	// Wide is a type that a value is cast to before it is summed, where the sum of integers of 64 bits has 64 bits itself
	// and wraps around or fails: to cast the sum would be too late. "" where sums grow by themselves.
	Wide string
	// TextLength and BytesLength are the functions that count the bytes of texts and of raw bytes; "" is OCTET_LENGTH.
	TextLength, BytesLength string
}

// Identifier quotes a name, or the parts of schema.name.
func (d Dialect) Identifier(name string) string {
	if d.Upper {
		name = strings.ToUpper(name)
	}
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = d.Quote + strings.ReplaceAll(p, d.Quote, d.Quote+d.Quote) + d.Quote
	}
	return strings.Join(parts, ".")
}

// Columns quotes the schema's column names for a column list.
func (d Dialect) Columns(s rows.Schema) string {
	names := s.Names()
	for i, n := range names {
		names[i] = d.Identifier(n)
	}
	return strings.Join(names, ", ")
}

// Number is the expression that gives a row's number back from its derived columns.
func (d Dialect) Number(s rows.Schema) string {
	terms := make([]string, len(s.Number))
	for i, t := range s.Number {
		c := s.Columns[t.Column]
		terms[i] = term(t, d.integer(c.Type, d.Identifier(c.Name)))
	}
	return strings.Join(terms, " + ")
}

// term is a summand of the number, of a column's value as an integer.
func term(t rows.Term, value string) string {
	if t.Minus != 0 {
		value = fmt.Sprintf("(%s - %d)", value, t.Minus)
	}
	if t.Times != 1 {
		value = fmt.Sprintf("%s * %d", value, t.Times)
	}
	return value
}

// integer reads a value of a column that a row's number is made of.
func (d Dialect) integer(t rows.Type, value string) string {
	switch t {
	case rows.Text:
		return fmt.Sprintf(d.TextNumber, value)
	case rows.Timestamp:
		return fmt.Sprintf(d.TimeNumber, value)
	default:
		return value
	}
}

// KeyColumns quotes the columns that a primary key is made of: all that a row's number is read from, since no one of
// them alone need be unique.
func (d Dialect) KeyColumns(s rows.Schema) string {
	names := make([]string, len(s.Number))
	for i, t := range s.Number {
		names[i] = d.Identifier(s.Columns[t.Column].Name)
	}
	return strings.Join(names, ", ")
}

// Statements writes the SQL about one target table and its claim table. Both names are quoted already. Run ids are
// made of lower-case letters, digits and dashes, so they need no escaping.
type Statements struct {
	Dialect
	Schema rows.Schema
	Table  string
	Claims string
	// OtherClaims is the claim table it would be if the table is of another kind than it seems; "" once that is known.
	OtherClaims string
}

// DropTable removes the table.
func (s Statements) DropTable() string { return fmt.Sprintf(cmp.Or(s.Drop, "DROP TABLE %s"), s.Table) }

// Truncate empties the table.
func (s Statements) Truncate() string { return "TRUNCATE TABLE " + s.Table }

// SelectAny reads one row if there is any.
func (s Statements) SelectAny() string {
	return fmt.Sprintf(cmp.Or(s.Any, "SELECT 1 FROM %s LIMIT 1"), s.Table)
}

// InsertClaim claims a batch.
func (s Statements) InsertClaim(r loader.Ref) string {
	return s.insert(r.ID.Run, r.ID.Number, r.First, r.Rows)
}

// InsertReservation sets a run's key range aside in the table, and in no other that shares the claim table.
func (s Statements) InsertReservation(run string, first, rows int64) string {
	return s.insert(run, s.reservation(), first, rows)
}

// reservation is the batch number under which ranges of the table's keys are set aside: the claim table has no column for
// the table's name. The schema is left out, since a run that asks the server nothing may not know it, and so is the case
// of letters. Two tables of one number keep off each other's ranges, which costs keys and no rows.
func (s Statements) reservation() int64 {
	name := s.Table[strings.LastIndexByte(s.Table, '.')+1:]
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.ToLower(name)))
	return math.MinInt64 + int64(hash.Sum64()>>2)
}

// reserved is the condition on claims that set keys of the table aside.
func (s Statements) reserved() string {
	return fmt.Sprintf("batch IN (%d, %d)", everywhere, s.reservation())
}

func (s Statements) insert(run string, number, first, rows int64) string {
	return fmt.Sprintf("INSERT INTO %s (run, batch, first_key, row_count) VALUES ('%s', %d, %d, %d)",
		s.Claims, run, number, first, rows)
}

// SelectClaim reads the row count of one batch's claim.
func (s Statements) SelectClaim(run string, number int64) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE run = '%s' AND batch = %d", s.digits("row_count"), s.Claims, run, number)
}

// SelectReservation reads the first key of a run's reservation.
func (s Statements) SelectReservation(run string) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE run = '%s' AND %s", s.digits("first_key"), s.Claims, run, s.reserved())
}

// SelectClaims reads number and row count of all claimed batches of a run.
func (s Statements) SelectClaims(run string) string {
	return fmt.Sprintf("SELECT %s, %s FROM %s WHERE run = '%s' AND batch >= 0", s.digits("batch"), s.digits("row_count"), s.Claims, run)
}

// DeleteClaim removes one row of the claim table.
func (s Statements) DeleteClaim(run string, number int64) string {
	return fmt.Sprintf("DELETE FROM %s WHERE run = '%s' AND batch = %d", s.Claims, run, number)
}

// DeleteClaims removes what the claim table holds of a run.
func (s Statements) DeleteClaims(run string) string {
	return fmt.Sprintf("DELETE FROM %s WHERE run = '%s'", s.Claims, run)
}

// SelectNextFree reads the first row number behind all rows of the table and all its reservations; 0 for an empty table.
func (s Statements) SelectNextFree() string {
	largest := "MAX(" + s.Number(s.Schema) + ")"
	if s.single() { // an index is made of the values themselves, which sort as their numbers do
		largest = term(s.Schema.Number[0], s.integer(s.Schema.Key().Type, "MAX("+s.key()+")"))
	}
	free := fmt.Sprintf("GREATEST((SELECT COALESCE(%s, -1) + 1 FROM %s), (SELECT COALESCE(MAX(first_key + row_count), 0) FROM %s WHERE %s))",
		largest, s.Table, s.Claims, s.reserved())
	return "SELECT " + s.digits(free) + s.Dual
}

// DeleteRow removes the row with the number: the probe's, where a rollback kept it.
func (s Statements) DeleteRow(number int64) string {
	return fmt.Sprintf("DELETE FROM %s WHERE %s", s.Table, s.is(number))
}

// SelectRow finds out whether a row with the number is there.
func (s Statements) SelectRow(number int64) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", s.digits("COUNT(*)"), s.Table, s.is(number))
}

// SelectCount counts the rows of a range.
func (s Statements) SelectCount(r loader.KeyRange) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", s.digits("COUNT(*)"), s.Table, s.Within(r))
}

// SelectDistinct counts the different row numbers of a range.
func (s Statements) SelectDistinct(r loader.KeyRange) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", s.digits("COUNT(DISTINCT "+s.Number(s.Schema)+")"), s.Table, s.Within(r))
}

// SelectSpan counts the rows of a range that are there, with the smallest and the largest of their numbers.
func (s Statements) SelectSpan(r loader.KeyRange) string {
	n := s.Number(s.Schema)
	return fmt.Sprintf("SELECT %s, %s, %s FROM %s WHERE %s",
		s.digits("COUNT(*)"), s.digits("MIN("+n+")"), s.digits("MAX("+n+")"), s.Table, s.Within(r))
}

// SelectRows reads the rows with the given numbers: the number, then all columns. One statement, so that a table
// without an index is scanned once and not once a row.
func (s Statements) SelectRows(numbers []int64) string {
	names := s.Schema.Names()
	for i, c := range s.Schema.Columns {
		names[i] = s.Identifier(c.Name)
		if read := s.Reads[c.Type]; read != "" {
			names[i] = fmt.Sprintf(read, names[i])
		}
	}
	return fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s", s.digits(s.Number(s.Schema)), strings.Join(names, ", "), s.Table, s.among(numbers))
}

// SelectFront counts the rows of a batch that are there, with the smallest and the largest of their numbers. The
// numbers are listed one by one: tables that are looked up this way hash their key, and would be read from end to end
// for a range of it.
func (s Statements) SelectFront(r loader.Ref) string {
	n := s.Number(s.Schema)
	numbers := make([]int64, r.Rows)
	for i := range numbers {
		numbers[i] = r.First + int64(i)
	}
	return fmt.Sprintf("SELECT COUNT(*), MIN(%[1]s), MAX(%[1]s) FROM %[2]s WHERE %[3]s", n, s.Table, s.among(numbers))
}
