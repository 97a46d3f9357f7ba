package sqlload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// ClaimsTable is the claim table in the target's schema. UnloggedClaims stands beside it for unlogged targets: after a
// crash claims must not outlive their rows.
const (
	ClaimsTable    = "terapush_claims"
	UnloggedClaims = "terapush_claims_unlogged"
)

// RunsTable is the table of the runs' rows, beside the claim table and always logged.
const RunsTable = "terapush_runs"

// Probe is the batch number of a probe's claim, which is rolled back.
const Probe = -2

// Dialect is how a family of servers writes SQL. Formats take %s; an empty one is the default that is named. Prepare
// refuses one without Quote, Divide, TextNumber, TimeNumber or TimeLiteral, or with neither Decimal nor Digits.
type Dialect struct {
	Quote string // the quotation mark of identifiers
	Upper bool   // names are quoted in upper case, as the server folds those without quotation marks
	Fold  bool   // names of columns are compared without case
	Types Types
	// KeyTypes are the types of columns that are in a key, where those of Types can be in none; one without SQL stands
	// for a type of ours that can be in none at all.
	KeyTypes Types
	Keys     KeyRule
	// Unique makes a unique key of columns; UNIQUE (%s). FirstInKey follows the first column of a primary key, as " HASH".
	Unique, FirstInKey string
	// AtomicDDL reports whether a transaction can drop a table and create another one.
	AtomicDDL bool
	Drop      string // removes a table; DROP TABLE
	Backslash bool   // begins an escape in literals
	// Flush writes earlier loads that the server still has in memory, which would arrive after a TRUNCATE; "" if it
	// keeps none.
	Flush string
	Any   string // reads one row of a table; LIMIT 1
	// Divide and Modulo are quotient and remainder of two integers, as formats of %s and %d. Modulo is the operator %
	// if empty.
	Divide, Modulo string
	// Decimal is a type for sums beyond 64 bits, which is read as text without loss.
	Decimal string
	// Digits turns a number into its decimal digits, in place of Decimal, for drivers that would round it.
	Digits string
	Hex    bool // raw bytes are read as hexadecimal digits
	// EmptyIsNull reports whether the server stores an empty text or raw value as NULL.
	EmptyIsNull bool
	MaxList     int    // the most elements of an IN list; 0 is no limit
	TextNumber  string // the integer of 64 bits that a text spells, or a narrower integer is
	// HexNumber is the integer that the last 15 hexadecimal digits of a text spell; "" if the server has no exact
	// expression. UUIDText turns a column of rows.UUID into a text of hexadecimal digits; %s.
	HexNumber, UUIDText string
	// TimeNumber turns a timestamp into microseconds since 1970-01-01 00:00:00: an integer, exact in all years from 1
	// to 9999, which floating point is not.
	TimeNumber string
	// TimeLiteral makes a timestamp of a text, always like 2026-01-02 03:04:05.000006. Its type is the column's, so
	// that comparisons use an index.
	TimeLiteral string
	// MomentLiteral is TimeLiteral for a column of moments, of a text in UTC; TimeLiteral if empty.
	MomentLiteral string
	// Leading reports whether an index serves the first column of a key of several. Conditions then bound that column
	// beside the number, an expression without an index.
	Leading bool
	// Tuples is a format of a list of the values of several columns, as in (a, b) IN (…), for which an index on them
	// serves. "" if none does: single rows of a key of several are then found as ranges are.
	Tuples string
	// Wide is the type that a value is cast to before it is summed, where sums of 64-bit integers have 64 bits and wrap
	// around or fail; "" where sums grow.
	Wide string
	// Wider is Decimal for sums of numbers of 38 digits, as a format of how many are behind the point; "" is Decimal.
	Wider string
	// TextLength and BytesLength count the bytes of texts and raw bytes; OCTET_LENGTH.
	TextLength, BytesLength string
}

// incomplete returns an error if the Dialect lacks what statements are made of. The server would call them wrong, those
// of the proof once all rows are in.
func (s Statements) incomplete() error {
	hex := slices.ContainsFunc(s.Schema.Number, func(t rows.Term) bool { return t.Hex })
	var missing []string
	for _, field := range [...]struct {
		name, value string
		needed      bool
	}{
		{"Quote", s.Quote, true},
		{"Divide", s.Divide, true},
		{"Decimal or Digits", s.Decimal + s.Digits, true},
		{"TextNumber", s.TextNumber, true},
		{"TimeNumber", s.TimeNumber, true},
		{"TimeLiteral", s.TimeLiteral, true},
		{"HexNumber, which this key needs", s.HexNumber, hex},
	} {
		if field.needed && field.value == "" {
			missing = append(missing, field.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the back-end's Dialect has no %s", strings.Join(missing, ", "))
}

// Identifier quotes a name, or the parts of schema.name.
func (d Dialect) Identifier(name string) string {
	if d.Upper {
		name = strings.ToUpper(name)
	}
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = d.Quoted(p)
	}
	return strings.Join(parts, ".")
}

// Columns quotes the schema's column names for a column list.
func (d Dialect) Columns(s rows.Schema) string {
	return d.columns(s.Names())
}

// columns quotes the names of columns of a schema.
func (d Dialect) columns(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = d.Column(name)
	}
	return strings.Join(quoted, ", ")
}

// Names quotes the names of columns for a column list.
func (d Dialect) Names(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = d.Quoted(name)
	}
	return strings.Join(quoted, ", ")
}

// Quoted quotes a name in which a dot is a letter.
func (d Dialect) Quoted(name string) string {
	return d.Quote + strings.ReplaceAll(name, d.Quote, d.Quote+d.Quote) + d.Quote
}

// Column quotes the name of a column of a schema.
func (d Dialect) Column(name string) string {
	if d.Upper {
		name = strings.ToUpper(name)
	}
	return d.Quoted(name)
}

// Number returns the expression for a row's number, made of its derived columns.
func (d Dialect) Number(s rows.Schema) string {
	terms := make([]string, len(s.Number))
	for i, t := range s.Number {
		c := s.Columns[t.Column]
		value := d.Column(c.Name)
		if t.Hex {
			terms[i] = d.hexNumber(c.Type, value)
			continue
		}
		terms[i] = d.term(t, d.integer(c.Type, value))
	}
	return strings.Join(terms, " + ")
}

// hexNumber returns the integer at the end of a UUID, or of the text of one.
func (d Dialect) hexNumber(t rows.Type, value string) string {
	if t == rows.UUID && d.UUIDText != "" {
		value = fmt.Sprintf(d.UUIDText, value)
	}
	return fmt.Sprintf(d.HexNumber, "REPLACE("+value+", '-', '')")
}

// term returns a summand of the number for a column's value as an integer.
func (d Dialect) term(t rows.Term, value string) string {
	if t.Minus != 0 {
		value = fmt.Sprintf("(%s - %d)", value, t.Minus)
	}
	if t.Stride > 0 {
		last, before := d.modulo(value, t.Stride), d.modulo("("+fmt.Sprintf(d.Divide, value, t.Stride)+")", t.Stride)
		return fmt.Sprintf("(%s + (%s - %s) * %d)", value, last, before, t.Stride-1)
	}
	if t.Times != 1 {
		value = fmt.Sprintf("%s * %d", value, t.Times)
	}
	return value
}

// integer returns the expression for a derived column's value as an integer.
func (d Dialect) integer(t rows.Type, value string) string {
	switch t {
	case rows.Text, rows.Char, rows.Int32, rows.Int16: // products of narrow integers would not fit them
		return fmt.Sprintf(d.TextNumber, value)
	case rows.Uint64, rows.Uint32, rows.Uint16: // whose differences may be below 0
		return fmt.Sprintf(d.TextNumber, value)
	case rows.Timestamp, rows.TimestampTZ:
		return fmt.Sprintf(d.TimeNumber, value)
	default:
		return value
	}
}

// KeyColumns quotes the columns of a primary key: all those of a row's number, since one alone need not be unique.
func (d Dialect) KeyColumns(s rows.Schema) string {
	return d.columns(s.NumberNames())
}

// Statements writes the SQL about one target table and its claim table, whose names are quoted. Run ids are lower-case
// letters, digits and dashes, and need no escaping.
type Statements struct {
	Dialect
	Schema rows.Schema
	Table  string
	// Own is what the table's own rows are read from, where the rows of others are read through it: "ONLY t"; "" is
	// Table.
	Own    string
	Claims string
	// OtherClaims is the claim table of a target that turns out to be logged or not; "" once that is known.
	OtherClaims string
	// UUID returns the text of the key in the row with a number, if that is a UUID; nil if it is none, or not known.
	UUID func(number int64) string
	// RawUUID reports whether the table has the 16 bytes of it.
	RawUUID bool
	// Row is the row of this process's run: who may write.
	Row loader.RunRow
}

func (s Statements) own() string { return cmp.Or(s.Own, s.Table) }

// literal quotes a text.
func (d Dialect) literal(text string) string {
	if d.Backslash {
		return EscapedLiteral(text)
	}
	return Literal(text)
}

// literals quotes texts for a list.
func (d Dialect) literals(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = d.literal(text)
	}
	return strings.Join(all, ", ")
}

// Runs returns the table of the runs' rows, quoted, which stands beside the claim table.
func (s Statements) Runs() string {
	for _, claims := range [...]string{UnloggedClaims, ClaimsTable} {
		if before, is := strings.CutSuffix(s.Claims, s.Identifier(claims)); is {
			return before + s.Identifier(RunsTable)
		}
	}
	return s.Identifier(RunsTable)
}

// claimsIn returns the name of a claim table in another schema.
func (s Statements) claimsIn(schema, claims string) string {
	return s.Quoted(schema) + "." + s.Identifier(claims)
}

// bareTable returns the table's name without its schema: the runs' rows stand in the same one. Names that the server
// takes for one are one.
func (s Statements) bareTable() string {
	q := s.Quote
	name := s.Table
	if i := strings.LastIndex(name, q+"."+q); i >= 0 {
		name = name[i+len(q)+1:]
	}
	name = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(name, q), q), q+q, q)
	if s.Fold || s.Upper {
		name = strings.ToLower(name)
	}
	return name
}

// DropTable removes the table.
func (s Statements) DropTable() string { return fmt.Sprintf(cmp.Or(s.Drop, "DROP TABLE %s"), s.Table) }

// Truncate empties the table.
func (s Statements) Truncate() string { return "TRUNCATE TABLE " + s.own() }

// SelectAny returns a row if the table has any.
func (s Statements) SelectAny() string {
	return fmt.Sprintf(cmp.Or(s.Any, "SELECT 1 FROM %s LIMIT 1"), s.own())
}

// InsertClaim claims a batch from the run's row: it inserts nothing if this process may not write.
func (s Statements) InsertClaim(r loader.Ref) string {
	return s.claimFrom(r.ID.Run, "", r.ID.Number, r.First, r.Rows, "")
}

// InsertClaimBy is InsertClaim with one more column.
func (s Statements) InsertClaimBy(r loader.Ref, column, value string) string {
	return s.claimFrom(r.ID.Run, ", "+column, r.ID.Number, r.First, r.Rows, ", "+value)
}

// InsertAnyClaim is InsertClaim of batches whose number, first row and rows are given when it is executed.
func (s Statements) InsertAnyClaim(number, first, rows string) string {
	return s.claimFrom("", "", number, first, rows, "")
}

func (s Statements) claimFrom(run, columns string, number, first, rows any, values string) string {
	return fmt.Sprintf("INSERT INTO %s (run, batch, first_key, row_count%s) SELECT '%s', %v, %v, %v%s %s",
		s.Claims, columns, s.claimant(run), number, first, rows, values, s.MayWrite())
}

// TryClaim inserts the claim of a batch whoever may write, to be rolled back: it waits for a session that has inserted
// it.
func (s Statements) TryClaim(r loader.Ref) string {
	return fmt.Sprintf("INSERT INTO %s (run, batch, first_key, row_count) VALUES ('%s', %d, %d, %d)",
		s.Claims, s.claimant(r.ID.Run), r.ID.Number, r.First, r.Rows)
}

// claimant returns what the claims of this process's run have: a name may have been used before.
func (s Statements) claimant(run string) string { return cmp.Or(s.Row.Run, run) }

// SelectClaim reads the row count of one batch's claim.
func (s Statements) SelectClaim(run string, number int64) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE run = '%s' AND batch = %d", s.digits("row_count"), s.Claims, s.claimant(run), number)
}

// SelectClaims reads number and row count of all claimed batches of a run.
func (s Statements) SelectClaims(run string) string {
	return fmt.Sprintf("SELECT %s, %s FROM %s WHERE run = '%s' AND batch >= 0", s.digits("batch"), s.digits("row_count"), s.Claims, run)
}

// SelectBounds reads the smallest and the largest number of a run's claims.
func (s Statements) SelectBounds(run string) string {
	return fmt.Sprintf("SELECT %s, %s FROM %s WHERE run = '%s'", s.digits("MIN(batch)"), s.digits("MAX(batch)"), s.Claims, run)
}

// DeleteClaim removes the claim of one batch.
func (s Statements) DeleteClaim(run string, number int64) string {
	return fmt.Sprintf("DELETE FROM %s WHERE run = '%s' AND batch = %d", s.Claims, s.claimant(run), number)
}

// DeleteClaims removes the claims of some batches of a run.
func (s Statements) DeleteClaims(run string, first, last int64) string {
	return fmt.Sprintf("DELETE FROM %s WHERE run = '%s' AND batch BETWEEN %d AND %d", s.Claims, run, first, last)
}

// SelectNextFree reads the first row number after all rows of the table, plus start. It is below that if the table has
// only rows before those of the dataset.
func (s Statements) SelectNextFree() string {
	largest := "MAX(" + s.Number(s.Schema) + ")"
	if s.single() { // the index has the column's values, which sort as the numbers do
		t := s.Schema.Number[0]
		t.Minus -= s.start()
		largest = s.term(t, s.integer(s.Schema.Key().Type, "MAX("+s.key()+")"))
	}
	return fmt.Sprintf("SELECT %s FROM %s", s.digits(fmt.Sprintf("COALESCE(%s, %d) + 1", largest, s.start()-1)), s.own())
}

// start is the value of row 0 in a key that is one number or its digits: a difference may be below 0, which an unsigned
// column does not take.
func (s Statements) start() int64 {
	if !s.single() || s.Schema.Key().Type.IsTime() {
		return 0
	}
	return s.Schema.Number[0].Minus
}

// DeleteRow removes the probe's row, where a rollback kept it.
func (s Statements) DeleteRow(number int64) string {
	return fmt.Sprintf("DELETE FROM %s WHERE %s", s.own(), s.is(number))
}

// SelectRow counts the rows with a number.
func (s Statements) SelectRow(number int64) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", s.digits("COUNT(*)"), s.own(), s.is(number))
}

// SelectCount counts the rows of a range.
func (s Statements) SelectCount(r loader.KeyRange) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", s.digits("COUNT(*)"), s.own(), s.Within(r))
}

// SelectDistinct counts the distinct row numbers of a range.
func (s Statements) SelectDistinct(r loader.KeyRange) string {
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", s.digits("COUNT(DISTINCT "+s.Number(s.Schema)+")"), s.own(), s.Within(r))
}

// SelectRows reads the rows with the given numbers as SelectWhere does. One statement scans a table without an index
// once, not once a row.
func (s Statements) SelectRows(numbers []int64) string { return s.SelectWhere(s.among(numbers)) }

// SelectWhere reads the rows that meet a condition: the number, then all columns.
func (s Statements) SelectWhere(condition string) string {
	names := s.Schema.Names()
	for i, c := range s.Schema.Columns {
		names[i] = s.Types.read(c, s.Column(c.Name))
	}
	return fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s", s.digits(s.Number(s.Schema)), strings.Join(names, ", "), s.own(), condition)
}

// SelectRecords reads the columns of the rows that have one of the texts as their key. Those of an integer are without
// quotation marks: MySQL compares a number with a text as floating-point numbers.
func (s Statements) SelectRecords(columns []rows.Column, key int, texts []string) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = s.Types.read(c, s.Column(c.Name))
	}
	list := strings.Join(texts, ", ")
	if !columns[key].Type.IsInteger() {
		list = s.literals(texts)
	}
	return fmt.Sprintf(
		"SELECT %s FROM %s WHERE %s IN (%s)", strings.Join(names, ", "), s.own(), s.Column(columns[key].Name), list)
}
