package sqlload

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// SelectBuckets reads for each bucket of a range: number, rows, smallest and largest offset, sum and sum of squares of
// the offsets, with g.Mix the sum of their mix, and with g.Measures those of the schema. It is one scan; grouping by a
// division needs a hash of the buckets, never a sort of the rows.
func (s Statements) SelectBuckets(g loader.Grouping) string {
	from := " FROM " + s.own() + " WHERE " + s.Within(g.KeyRange)
	if g.Part != "" {
		from += " AND " + g.Part
	}
	offset := fmt.Sprintf("(%s - %d)", s.Number(s.Schema), g.First)
	inner := []string{fmt.Sprintf(s.Divide, offset, g.Size) + " AS bucket", s.modulo(offset, g.Size) + " AS o"}
	o := s.wide("o")
	outer := []string{
		s.digits("bucket"), s.digits("COUNT(*)"), s.digits("MIN(o)"), s.digits("MAX(o)"),
		s.decimal("SUM(" + o + ")"), s.decimal("SUM(" + o + " * " + o + ")"),
	}
	middle := "bucket, o"
	if g.Mix != nil {
		v := "(" + s.modulo(fmt.Sprintf("((u + o) * (u + %d))", g.Mix.B), loader.MixQ) + ")"
		outer = append(outer, s.decimal("SUM("+s.wide("u")+" * "+s.wide(v)+")"))
		middle += ", " + s.modulo(fmt.Sprintf("((o + %[1]d) * (o + %[1]d))", g.Mix.A), loader.MixP) + " AS u"
	}
	if g.Measures {
		for i, m := range s.Schema.Measures() {
			name := fmt.Sprintf("m%d", i)
			value, sum := s.measure(m, name)
			inner = append(inner, value+" AS "+name)
			middle += ", " + name
			outer = append(outer, sum)
		}
	}
	from = " FROM (SELECT " + strings.Join(inner, ", ") + from + ") t"
	if g.Mix != nil {
		from = " FROM (SELECT " + middle + from + ") t"
	}
	return "SELECT " + strings.Join(outer, ", ") + from + " GROUP BY bucket"
}

// measure returns the expression of what is measured of a row, and that of its sum over a column of such values.
func (s Statements) measure(m rows.Measure, name string) (value, sum string) {
	c := s.Schema.Columns[m.Column]
	column := s.Column(c.Name)
	switch {
	case m.Of == rows.Nulls:
		return "CASE WHEN " + column + " IS NULL THEN 1 END", s.digits("COUNT(" + name + ")")
	case m.Of == rows.Length:
		return s.length(c.Type) + "(" + column + ")", s.decimal("SUM(" + s.wide(name) + ")")
	case c.Type == rows.Wide:
		return s.measureWide(c, column, name)
	case c.Type == rows.Decimal:
		// Sums of decimals are exact, and a cast would cut off the digits after the point.
		return column, s.decimal("SUM(" + name + ") * 1" + strings.Repeat("0", c.Scale))
	default:
		return column, s.decimal("SUM(" + s.wide(name) + ")")
	}
}

// wideHalf divides numbers of rows.WideDigits into two of which a sum has no more digits than that.
const wideHalf = 1_000_000_000_000_000_000

// measureWide makes integers of numbers first: their sum with the digits behind the point may have more than any type.
// Where the only type has no more digits than a number has, two halves are summed; see readSum.
func (d Dialect) measureWide(c rows.Column, column, name string) (value, sum string) {
	if d.Digits != "" {
		low := d.modulo(name, wideHalf)
		high := fmt.Sprintf("SUM((%s - %s) / %d)", name, low, wideHalf) // a quotient that is not rounded
		return column + " * 1" + strings.Repeat("0", c.Scale), d.digits(high) + " || ' ' || " + d.digits("SUM("+low+")")
	}

	all := d.Decimal
	if d.Wider != "" {
		all = fmt.Sprintf(d.Wider, 0)
		column = "CAST(" + column + " AS " + fmt.Sprintf(d.Wider, c.Scale) + ")"
	}
	value = column + " * 1" + strings.Repeat("0", c.Scale)
	return "CAST(" + value + " AS " + all + ")", "CAST(SUM(" + name + ") AS " + all + ")"
}

func (d Dialect) modulo(number string, by int64) string {
	return fmt.Sprintf(cmp.Or(d.Modulo, "%s %% %d"), number, by)
}

// digits reads an integer without loss.
func (d Dialect) digits(number string) string {
	return fmt.Sprintf(cmp.Or(d.Digits, "%s"), number)
}

// decimal is digits for a number of more than 64 bits.
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

// readBucket reads a row of SelectBuckets.
func readBucket(row [][]byte, mixed bool) (b loader.Bucket, err error) {
	measures := 6
	if mixed {
		measures++
	}
	if len(row) < measures {
		return b, fmt.Errorf("a bucket has %d values", len(row))
	}
	n := make([]*big.Int, len(row))
	for i, text := range row {
		var is bool
		if n[i], is = readSum(string(text)); !is {
			return b, fmt.Errorf("value %d of a bucket is %q, not an integer", i+1, text)
		}
	}
	b = loader.Bucket{Number: n[0].Int64(), Rows: n[1].Int64(), Min: n[2].Int64(), Max: n[3].Int64(), Sum: n[4], Squares: n[5]}
	if mixed {
		b.Mix = n[measures-1]
	}
	if len(n) > measures {
		b.Measures = n[measures:]
	}
	return b, nil
}

// readSum reads a sum, or the two halves of one with a blank between them. One is NULL if all values are, and that of
// decimals may have zeros after the point.
func readSum(text string) (sum *big.Int, is bool) {
	if high, low, halves := strings.Cut(text, " "); halves {
		sum, is = readSum(high)
		rest, isToo := readSum(low)
		if !is || !isToo {
			return nil, false
		}
		return sum.Mul(sum, big.NewInt(wideHalf)).Add(sum, rest), true
	}

	whole, fraction, _ := strings.Cut(cmp.Or(text, "0"), ".")
	sum, is = new(big.Int).SetString(whole, 10)
	return sum, is && strings.Trim(fraction, "0") == ""
}
