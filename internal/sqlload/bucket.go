package sqlload

import (
	"cmp"
	"database/sql"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// SelectBuckets counts the rows of a range bucket by bucket in one scan: number, rows, smallest and largest offset,
// sum and sum of squares of the offsets, and where asked for the summed length of every variable column. Grouping by a
// division needs a hash of the buckets, never a sort of the rows.
func (s Statements) SelectBuckets(g loader.Grouping) string {
	n := s.Number(s.Schema)
	var inner, outer strings.Builder
	for i, c := range s.Schema.Columns {
		if g.Lengths && c.Type.Variable() {
			fmt.Fprintf(&inner, ", %s(%s) AS l%d", s.length(c.Type), s.Identifier(c.Name), i)
			outer.WriteString(", " + s.decimal("SUM("+s.wide(fmt.Sprintf("l%d", i))+")"))
		}
	}
	o := s.wide("o")
	offset := fmt.Sprintf("(%s - %d)", n, g.First)
	return fmt.Sprintf(`SELECT %s, %s, %s, %s, %s, %s%s FROM (SELECT %s AS bucket, %s AS o%s FROM %s WHERE %s) t GROUP BY bucket`,
		s.digits("bucket"), s.digits("COUNT(*)"), s.digits("MIN(o)"), s.digits("MAX(o)"),
		s.decimal("SUM("+o+")"), s.decimal("SUM("+o+" * "+o+")"), outer.String(),
		fmt.Sprintf(s.Divide, offset, g.Size), fmt.Sprintf(cmp.Or(s.Modulo, "%s %% %d"), offset, g.Size), inner.String(),
		s.Table, s.Within(g.KeyRange))
}

// digits is a whole number as the driver reads it without loss.
func (d Dialect) digits(number string) string {
	if d.Digits == "" {
		return number
	}
	return fmt.Sprintf(d.Digits, number)
}

// decimal is the same for one that may have more than 64 bits.
func (d Dialect) decimal(number string) string {
	if d.Digits != "" {
		return d.digits(number)
	}
	return "CAST(" + number + " AS " + d.Decimal + ")"
}

func (d Dialect) wide(value string) string {
	if d.Wide == "" {
		return value
	}
	return "CAST(" + value + " AS " + d.Wide + ")"
}

func (d Dialect) length(t rows.Type) string {
	if t == rows.Bytes {
		return cmp.Or(d.BytesLength, "OCTET_LENGTH")
	}
	return cmp.Or(d.TextLength, "OCTET_LENGTH")
}

// ReadBucket reads a row of SelectBuckets, whose values are decimal digits.
func ReadBucket(values []string) (b loader.Bucket, err error) {
	const sum, squares, lengths = 4, 5, 6
	if len(values) < lengths {
		return b, fmt.Errorf("a bucket has %d values", len(values))
	}
	numbers := make([]int64, len(values))
	for i, text := range values {
		if i == sum || i == squares {
			continue
		}
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return b, fmt.Errorf("value %d of a bucket: %w", i+1, err)
		}
	}
	b = loader.Bucket{Number: numbers[0], Rows: numbers[1], Min: numbers[2], Max: numbers[3]}
	b.Lengths = append(b.Lengths, numbers[lengths:]...)
	var ok, also bool
	b.Sum, ok = new(big.Int).SetString(values[sum], 10)
	b.Squares, also = new(big.Int).SetString(values[squares], 10)
	if !ok || !also {
		return b, fmt.Errorf("sums of bucket %d are no integers: %q and %q", b.Number, values[sum], values[squares])
	}
	return b, nil
}

// ScanBucket reads the row of SelectBuckets that list stands at.
func ScanBucket(list *sql.Rows) (loader.Bucket, error) {
	columns, err := list.Columns()
	if err != nil {
		return loader.Bucket{}, err
	}
	values := make([]string, len(columns))
	to := make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	if err := list.Scan(to...); err != nil {
		return loader.Bucket{}, err
	}
	return ReadBucket(values)
}

// Outcome tells from how many of a batch's rows are there whether it is in: all of them, none, or what nobody can tell.
func Outcome(found, rows int64) loader.Applied {
	switch found {
	case rows:
		return loader.Yes
	case 0:
		return loader.No
	}
	return loader.Unknown
}
