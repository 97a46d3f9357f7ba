// Package encode turns blocks of rows into the bytes of a format, and rewrites the derived fields of bytes that are
// already encoded.
//
// Formats of rows share one loop (rows.go). Such a format is a layout, the bytes around the values, and a writer for
// each column, which New chooses, so that the loop does not depend on types. Parquet and columns keep the values of a
// column together and have loops of their own. Each format names the source of its rules.
package encode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Encoder writes one schema in one format. It is immutable and safe for concurrent use; buffers, blocks and offsets
// belong to the callers. It allocates nothing as long as dst and at have room.
//
// A buffer is encoded from its start: AppendHead to an empty dst, AppendRows once or more with the same at, AppendTail.
type Encoder interface {
	Format() batch.Format
	// MaxRow is the most bytes of a row, including the separator before it. It is exact if the variable columns are Plain.
	MaxRow() int
	AppendHead(dst []byte) []byte
	// AppendRows appends the rows of b and records in at where their derived fields are. dst begins with the head, and
	// must stay shorter than 4 GiB. AppendRows panics on a derived number that is negative or has more than the planned
	// digits, a derived text of another length, a decimal with more digits than its column, a date without a four-digit
	// year, a bool that is neither 0 nor 1, and a float that is not finite. It may overwrite up to 8 bytes of dst's
	// capacity after the result.
	AppendRows(dst []byte, b *rows.Block, at *Offsets) []byte
	AppendTail(dst []byte) []byte
}

// PerBatch is implemented by encoders of formats whose rows are not contiguous (Parquet, columns). ForBatch returns the
// encoder of one buffer; the Append methods of a PerBatch itself panic. Its Stamp takes the offsets that ForBatch's
// encoder recorded.
type PerBatch interface {
	// MaxBytes is the most bytes of a buffer of n rows, with head and tail.
	MaxBytes(n int64) int64
	// ForBatch returns the encoder of one buffer of exactly n rows, n ≥ 1. It is used once, by one goroutine:
	// AppendHead to an empty dst, AppendRows until it has had n rows, AppendTail. Only AppendTail completes the bytes,
	// and the offsets of its last AppendRows: Rows, and in Fields at most one place for each derived column.
	ForBatch(n int) Encoder
}

// Stamper is implemented by encoders whose derived fields have one length in every row and can be rewritten in place.
// Without it every batch has to be encoded again.
type Stamper interface {
	// Stamp replaces the derived fields of rows from … from+b.Rows−1 of the buffer by the derived columns of b, and
	// ignores the other columns. buf and at are as AppendRows left them. It panics like AppendRows.
	Stamp(buf []byte, at *Offsets, from int, b *rows.Block)
}

// Offsets are positions in an encoded buffer, in bytes from its start. They limit a buffer to 4 GiB.
type Offsets struct {
	Fields []uint32 // of every derived field, row by row, in each row in the schema's order; in Parquet, of every derived column
	Rows   int      // that are encoded, or will be (Parquet, columns); 0 of compressed rows
}

// Reset removes the offsets and keeps the memory.
func (o *Offsets) Reset() { o.Fields, o.Rows = o.Fields[:0], 0 }

// Options shape an encoder.
type Options struct {
	// Digits is the number of decimal digits of each derived column in text formats: 1 … MaxDigits, padded, so that
	// stamping never changes a length. 0 means MaxDigits, and nil that for all columns. See Digits.
	Digits []int
}

// MaxDigits is the number of digits of the largest Int64.
const MaxDigits = 19

// Digits returns Options.Digits for a block of one row with the largest values of the derived columns.
func Digits(widest *rows.Block) []int {
	digits := make([]int, len(widest.Columns))
	for c := range widest.Columns {
		if v := &widest.Columns[c]; v.Type.IsInteger() && len(v.Ints) > 0 {
			digits[c] = width(v.Ints[0])
		}
	}
	return digits
}

// New returns the encoder of the schema in the format. Its error is that of Carries, or about the options.
func New(f batch.Format, s rows.Schema, o Options) (Encoder, error) {
	if err := Carries(f, s); err != nil {
		return nil, err
	}
	if len(o.Digits) != 0 && len(o.Digits) != len(s.Columns) {
		return nil, fmt.Errorf("encode: digits for %d columns, but %s has %d", len(o.Digits), s.Dataset, len(s.Columns))
	}
	digits := make([]int, len(s.Columns))
	for c := range digits {
		digits[c] = MaxDigits
		if len(o.Digits) == 0 || o.Digits[c] == 0 {
			continue
		}
		if o.Digits[c] < 1 || o.Digits[c] > MaxDigits {
			return nil, fmt.Errorf("encode: %d digits for column %s: valid are 1 to %d, and 0 for %d",
				o.Digits[c], s.Columns[c].Name, MaxDigits, MaxDigits)
		}
		digits[c] = o.Digits[c]
	}
	switch f {
	case batch.Parquet:
		return newParquet(s), nil
	case batch.ColumnArrays:
		return newColumns(s), nil
	}
	l := layoutOf(f, s)
	e := newRowEncoder(l, s, digits)
	if _, how := f.Compression(); how != "" {
		return newCompressed(f, e), nil
	}
	return e, nil
}

// Carries returns nil if the format can carry the schema, and else the reason.
func Carries(f batch.Format, s rows.Schema) error {
	l := layoutOf(f, s)
	switch {
	case f == "orc":
		return fmt.Errorf("encode: terapush does not make ORC files; use format %s, %s or %s", batch.Parquet, batch.CSV, batch.NDJSON)
	case !slices.Contains(Formats(), f):
		names := make([]string, 0, len(Formats()))
		for _, f := range Formats() {
			names = append(names, string(f))
		}
		return fmt.Errorf("encode: format %q does not exist; available: %s", f, strings.Join(names, ", "))
	}
	for _, c := range s.Columns {
		carried := l.value != nil && l.value(c, MaxDigits) != nil || f == batch.Parquet && parquetWidth(c) > 0 ||
			f == batch.ColumnArrays && columnWidth(c) > 0
		switch {
		case c.Derived && c.Nullable:
			return fmt.Errorf("encode: derived column %s has NULLs, so it cannot be stamped", c.Name)
		case c.Derived && !stampable(c.Type):
			return fmt.Errorf("encode: derived column %s is of type %s, which cannot be stamped", c.Name, c.Type)
		case c.SQL != "" && !isText(f):
			return fmt.Errorf("encode: format %s cannot carry column %s, since the server has to parse its %s: take a format of text",
				f, c.Name, c.SQL)
		case c.Type.IsDecimal() && !decimalFits(c):
			return fmt.Errorf("encode: column %s is a decimal of %d digits, %d of them after the point: "+
				"valid are 1 to 38 digits, none to all of them after the point, in columns that are not derived",
				c.Name, c.Digits, c.Scale)
		case carried && c.Derived && c.Type.Variable() && (!c.Plain || c.MaxBytes == 0):
			return fmt.Errorf("encode: derived column %s is %s that is not plain or has no length, so it cannot be stamped", c.Name, c.Type)
		case carried:
		case c.Type == rows.Bytes:
			return fmt.Errorf("encode: format %s cannot carry the raw bytes of column %s: "+
				"declare it as text (for dataset documents use --payload-kind text), or use another format", f, c.Name)
		case c.Type.IsText():
			return fmt.Errorf("encode: format %s cannot carry the text of column %s: %s", f, c.Name, l.refusal)
		case c.Type == rows.Arrays:
			return fmt.Errorf("encode: format %s cannot carry the arrays of column %s, whose elements are %s: use another format",
				f, c.Name, c.Of.Type)
		default:
			return fmt.Errorf("encode: format %s cannot carry column %s of type %s: use a format of text", f, c.Name, c.Type)
		}
	}
	return nil
}

// stampable reports whether derived columns of the type have one length in every format.
func stampable(t rows.Type) bool {
	return t != rows.Bool && t != rows.Float32 && t != rows.Float64 && t != rows.JSON && t != rows.Time && !t.IsList()
}

// isText reports whether the server reads the values of a format by the rules of their types' texts.
func isText(f batch.Format) bool {
	return f != batch.PGBinary && f != batch.Parquet && f != batch.ColumnArrays
}

// Formats lists the formats that New makes.
func Formats() []batch.Format { return batch.Formats() }

func layoutOf(f batch.Format, s rows.Schema) layout {
	f, _ = f.Compression()
	switch f {
	case batch.TSV:
		return tsv()
	case batch.CSV:
		return csv()
	case batch.DorisCSV:
		return dorisCSV()
	case batch.NDJSON:
		return ndjson()
	case batch.Parquet, batch.ColumnArrays:
		return layout{} // a layout is for rows; Carries asks parquetWidth and columnWidth
	case batch.PGBinary:
		return pgBinary(len(s.Columns))
	case batch.PGText:
		return pgText()
	case batch.Values:
		return values()
	case batch.PGValues:
		return pgValues()
	default:
		return layout{}
	}
}
