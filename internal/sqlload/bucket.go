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
// the offsets, and with g.Lengths the summed length of every variable column. It is one scan; grouping by a division
// needs a hash of the buckets, never a sort of the rows.
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

// readBucket reads a row of SelectBuckets. A sum of lengths is NULL if all values are.
func readBucket(row [][]byte) (b loader.Bucket, err error) {
	const lengths = 6
	if len(row) < lengths {
		return b, fmt.Errorf("a bucket has %d values", len(row))
	}
	n := make([]*big.Int, len(row))
	for i, text := range row {
		var ok bool
		if n[i], ok = new(big.Int).SetString(cmp.Or(string(text), "0"), 10); !ok {
			return b, fmt.Errorf("value %d of a bucket is %q, not an integer", i+1, text)
		}
	}
	b = loader.Bucket{Number: n[0].Int64(), Rows: n[1].Int64(), Min: n[2].Int64(), Max: n[3].Int64(), Sum: n[4], Squares: n[5]}
	for _, length := range n[lengths:] {
		b.Lengths = append(b.Lengths, length.Int64())
	}
	return b, nil
}
