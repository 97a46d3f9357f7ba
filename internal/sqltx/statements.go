package sqltx

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
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

// Batch numbers of rows in the claim table that stand for no batch.
const (
	reservation = -1 // sets a run's whole key range aside
	Probe       = -2 // the claim of a probe, which is rolled back
)

// Dialect is what the SQL families write differently.
type Dialect struct {
	Quote   string // the quotation mark of identifiers
	Divide  string // the operator of integer division
	Decimal string // a type that a sum beyond 64 bits is cast to, so that it is read as text without loss
}

// Identifier quotes a name, or the parts of schema.name.
func (d Dialect) Identifier(name string) string {
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
		text := d.Identifier(s.Columns[t.Column].Name)
		if t.Minus != 0 {
			text = fmt.Sprintf("(%s - %d)", text, t.Minus)
		}
		if t.Times != 1 {
			text = fmt.Sprintf("%s * %d", text, t.Times)
		}
		terms[i] = text
	}
	return strings.Join(terms, " + ")
}

// Statements writes the SQL about one target table and its claim table. Both names are quoted already. Run ids are
// made of lower-case letters, digits and dashes, so they need no escaping.
type Statements struct {
	Dialect
	Schema rows.Schema
	Table  string
	Claims string
}

// InsertClaim claims a batch.
func (s Statements) InsertClaim(r loader.Ref) string {
	return s.insert(r.ID.Run, r.ID.Number, r.First, r.Rows)
}

// InsertReservation sets a run's key range aside.
func (s Statements) InsertReservation(run string, first, rows int64) string {
	return s.insert(run, reservation, first, rows)
}

func (s Statements) insert(run string, number, first, rows int64) string {
	return fmt.Sprintf("INSERT INTO %s (run, batch, first_key, row_count) VALUES ('%s', %d, %d, %d)",
		s.Claims, run, number, first, rows)
}

// SelectClaim reads the row count of one batch's claim.
func (s Statements) SelectClaim(run string, number int64) string {
	return fmt.Sprintf("SELECT row_count FROM %s WHERE run = '%s' AND batch = %d", s.Claims, run, number)
}

// SelectReservation reads the first key of a run's reservation.
func (s Statements) SelectReservation(run string) string {
	return fmt.Sprintf("SELECT first_key FROM %s WHERE run = '%s' AND batch = %d", s.Claims, run, reservation)
}

// SelectClaims reads number and row count of all claimed batches of a run.
func (s Statements) SelectClaims(run string) string {
	return fmt.Sprintf("SELECT batch, row_count FROM %s WHERE run = '%s' AND batch >= 0", s.Claims, run)
}

// DeleteClaim removes one row of the claim table.
func (s Statements) DeleteClaim(run string, number int64) string {
	return fmt.Sprintf("DELETE FROM %s WHERE run = '%s' AND batch = %d", s.Claims, run, number)
}

// DeleteClaims removes what the claim table holds of a run.
func (s Statements) DeleteClaims(run string) string {
	return fmt.Sprintf("DELETE FROM %s WHERE run = '%s'", s.Claims, run)
}

// SelectNextFree reads the first row number behind all rows of the table and all reservations; 0 for an empty table.
func (s Statements) SelectNextFree() string {
	return fmt.Sprintf("SELECT GREATEST((SELECT COALESCE(MAX(%s), -1) + 1 FROM %s), (SELECT COALESCE(MAX(first_key + row_count), 0) FROM %s WHERE batch = %d))",
		s.Number(s.Schema), s.Table, s.Claims, reservation)
}

// DeleteRow removes the row with the number: the probe's, where a rollback kept it.
func (s Statements) DeleteRow(number int64) string {
	return fmt.Sprintf("DELETE FROM %s WHERE %s = %d", s.Table, s.Number(s.Schema), number)
}

// SelectRow finds out whether a row with the number is there.
func (s Statements) SelectRow(number int64) string {
	return fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s = %d", s.Table, s.Number(s.Schema), number)
}

// SelectBuckets counts the rows of a range bucket by bucket in one scan: number, rows, smallest and largest offset,
// sum and sum of squares of the offsets, and where asked for the summed length of every variable column. Grouping by a division
// needs a hash of the buckets, never a sort of the rows.
func (s Statements) SelectBuckets(g loader.Grouping) string {
	n := s.Number(s.Schema)
	var inner, outer strings.Builder
	for i, c := range s.Schema.Columns {
		if g.Lengths && c.Type.Variable() {
			fmt.Fprintf(&inner, ", OCTET_LENGTH(%s) AS l%d", s.Identifier(c.Name), i)
			fmt.Fprintf(&outer, ", CAST(SUM(l%d) AS %s)", i, s.Decimal)
		}
	}
	return fmt.Sprintf(`SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS %[1]s), CAST(SUM(o * o) AS %[1]s)%[2]s `+
		`FROM (SELECT (%[3]s - %[4]d) %[5]s %[6]d AS bucket, (%[3]s - %[4]d) %% %[6]d AS o%[7]s FROM %[8]s WHERE %[9]s) AS t GROUP BY bucket`,
		s.Decimal, outer.String(), n, g.First, s.Divide, g.Size, inner.String(), s.Table, s.in(g.KeyRange))
}

// SelectDistinct counts the different row numbers of a range.
func (s Statements) SelectDistinct(r loader.KeyRange) string {
	return fmt.Sprintf("SELECT COUNT(DISTINCT %s) FROM %s WHERE %s", s.Number(s.Schema), s.Table, s.in(r))
}

// SelectRows reads the rows with the given numbers: the number, then all columns. One statement, so that a table
// without an index is scanned once and not once a row.
func (s Statements) SelectRows(numbers []int64) string {
	n := s.Number(s.Schema)
	return fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s IN (%s)", n, s.Columns(s.Schema), s.Table, n, list(slices.Values(numbers)))
}

// SelectFront counts the rows of a batch that are there, with the smallest and the largest of their numbers. The
// numbers are listed one by one: tables that are looked up this way hash their key, and would be read from end to end
// for a range of it.
func (s Statements) SelectFront(r loader.Ref) string {
	n := s.Number(s.Schema)
	numbers := func(yield func(int64) bool) {
		for i := range r.Rows {
			if !yield(r.First + i) {
				return
			}
		}
	}
	return fmt.Sprintf("SELECT COUNT(*), MIN(%[1]s), MAX(%[1]s) FROM %[2]s WHERE %[1]s IN (%[3]s)", n, s.Table, list(numbers))
}

func list(numbers iter.Seq[int64]) []byte {
	var text []byte
	for n := range numbers {
		if len(text) > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return text
}

func (s Statements) in(r loader.KeyRange) string {
	return fmt.Sprintf("%s BETWEEN %d AND %d", s.Number(s.Schema), r.First, r.Last)
}
