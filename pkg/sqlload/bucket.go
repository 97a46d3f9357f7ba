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
// the offsets, with g.Mix the sum of their mix, and with g.Lengths the summed length of every variable column. It is one
// scan; grouping by a division needs a hash of the buckets, never a sort of the rows.
func (s Statements) SelectBuckets(g loader.Grouping) string {
	from := " FROM " + s.Table + " WHERE " + s.Within(g.KeyRange)
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
	for i, c := range s.Schema.Columns {
		if name := fmt.Sprintf("l%d", i); g.Lengths && c.Type.Variable() {
			inner = append(inner, s.length(c.Type)+"("+s.Identifier(c.Name)+") AS "+name)
			middle += ", " + name
			outer = append(outer, s.decimal("SUM("+s.wide(name)+")"))
		}
	}
	from = " FROM (SELECT " + strings.Join(inner, ", ") + from + ") t"
	if g.Mix != nil {
		from = " FROM (SELECT " + middle + from + ") t"
	}
	return "SELECT " + strings.Join(outer, ", ") + from + " GROUP BY bucket"
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

// readBucket reads a row of SelectBuckets. A sum of lengths is NULL if all values are.
func readBucket(row [][]byte, mixed bool) (b loader.Bucket, err error) {
	lengths := 6
	if mixed {
		lengths++
	}
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
	if mixed {
		b.Mix = n[lengths-1]
	}
	for _, length := range n[lengths:] {
		b.Lengths = append(b.Lengths, length.Int64())
	}
	return b, nil
}
