package encode_test

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

func decimalSchema(digits, scale int) rows.Schema {
	return rows.Schema{Dataset: "d", Columns: []rows.Column{{Name: "c", Type: rows.Decimal, Digits: digits, Scale: scale}}}
}

func powerOfTen(n int) int64 {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil).Int64()
}

func decimalBlock(s rows.Schema, values ...int64) *rows.Block {
	b := rows.NewBlock(s)
	b.Reset(len(values))
	copy(b.Columns[0].Ints, values)
	return b
}

// decimalValues returns those where the number of digits changes, and where a group of four does.
func decimalValues(digits int) []int64 {
	values := []int64{0, 1, 9, 12_345_678, 100_000_005, 120_000_000_000}
	for n := 1; n <= digits; n++ {
		values = append(values, powerOfTen(n), powerOfTen(n)-1, powerOfTen(n)+1, 5*powerOfTen(n-1))
	}
	var fitting []int64
	for _, v := range values {
		if v < powerOfTen(digits) {
			fitting = append(fitting, v, -v)
		}
	}
	return fitting
}

// checkDecimals compares text with exact arithmetic, and PostgreSQL's binary numeric with what pgx reads and writes.
func checkDecimals(t testing.TB, digits, scale int, values []int64) {
	s := decimalSchema(digits, scale)
	b := decimalBlock(s, values...)
	var texts []string
	for _, v := range values {
		texts = append(texts, new(big.Rat).SetFrac64(v, powerOfTen(scale)).FloatString(scale))
	}
	got, _ := whole(newEncoder(t, batch.TSV, s), b)
	require.Equal(t, strings.Join(texts, "\n")+"\n", string(got), "%d digits, %d after the point", digits, scale)

	rest, _ := whole(newEncoder(t, batch.PGBinary, s), b)
	rest = rest[19:]
	for i, text := range texts {
		size := binary.BigEndian.Uint32(rest[2:])
		field := rest[6 : 6+size]
		var n pgtype.Numeric
		require.NoError(t, pgTypes.Scan(pgtype.NumericOID, pgtype.BinaryFormatCode, field, &n))
		read := new(big.Rat).SetInt(n.Int)
		power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n.Exp, -n.Exp))), nil))
		if n.Exp < 0 {
			power.Inv(power)
		}
		require.Equal(t, text, read.Mul(read, power).FloatString(scale), "%d digits, %d after the point", digits, scale)
		require.EqualValues(t, scale, binary.BigEndian.Uint16(field[6:]), "dscale")
		if groups := field[8:]; len(groups) > 0 {
			require.NotZero(t, binary.BigEndian.Uint16(groups), "%s begins with a zero", text)
			require.NotZero(t, binary.BigEndian.Uint16(groups[len(groups)-2:]), "%s ends with a zero", text)
		}
		require.Equal(t, values[i] < 0, field[4] == 0x40)
		rest = rest[6+size:]
	}
	require.Equal(t, "\xFF\xFF", string(rest))
}

func TestDecimalsOfEveryShape(t *testing.T) {
	for digits := 1; digits <= 18; digits++ {
		for scale := 0; scale <= digits; scale++ {
			values := decimalValues(digits)
			checkDecimals(t, digits, scale, values)
			checkDecimals(t, digits, scale, values[len(values)-1:]) // at the very end of the buffer
			checkDecimals(t, digits, scale, []int64{powerOfTen(digits) - 1})
		}
	}
}

func FuzzDecimals(f *testing.F) {
	f.Add(15, 2, int64(1049500), int64(-7))
	f.Add(18, 18, int64(1), int64(-999_999_999_999_999_999))
	f.Fuzz(func(t *testing.T, digits, scale int, v, w int64) {
		if digits < 1 || digits > 18 || scale < 0 || scale > digits {
			t.Skip("no column has these digits")
		}
		checkDecimals(t, digits, scale, []int64{v % powerOfTen(digits), w % powerOfTen(digits)})
	})
}

func TestDecimalsAreChecked(t *testing.T) {
	for _, f := range uncompressed() {
		s := decimalSchema(4, 2)
		e := newEncoder(t, f, s)
		whole(e, decimalBlock(s, 9999, -9999))
		for _, v := range []int64{10_000, -10_000, -1 << 63, 1<<63 - 1} {
			assert.PanicsWithValue(t, fmt.Sprintf("encode: %d in a decimal column whose values are not beyond 9999", v),
				func() { whole(e, decimalBlock(s, v)) }, "%s", f)
		}
		for _, c := range []rows.Column{
			{Digits: 0, Scale: 0}, {Digits: 19, Scale: 2}, {Digits: 4, Scale: 5}, {Digits: -1, Scale: -1},
			{Digits: 4, Scale: 2, Derived: true},
		} {
			c.Name, c.Type = "c", rows.Decimal
			require.EqualError(t, encode.Carries(f, rows.Schema{Columns: []rows.Column{c}}), fmt.Sprintf(
				"encode: column c is a decimal of %d digits, %d of them after the point: valid are 1 to 38 digits, none to all of "+
					"them after the point, in columns that are not derived", c.Digits, c.Scale))
		}
	}
}
