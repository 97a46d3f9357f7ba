package encode_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// twoDerived has derived columns around a drawn one, so that strides and columns can be mixed up.
func twoDerived() rows.Schema {
	return rows.Schema{
		Dataset: "two",
		Columns: []rows.Column{
			{Name: "a", Type: rows.Int64, Derived: true},
			{Name: "words", Type: rows.Text, MaxBytes: 20},
			{Name: "b", Type: rows.Int64, Derived: true},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

func twoDerivedBlock(n int, first int64, second func(int64) int64, words string) *rows.Block {
	b := rows.NewBlock(twoDerived())
	b.Reset(n)
	for i := range n {
		b.Columns[0].Ints[i] = first + int64(i)
		b.Columns[2].Ints[i] = second(first + int64(i))
		b.Columns[1].Data = append(b.Columns[1].Data, words[:i%len(words)]...)
		b.Columns[1].Ends = append(b.Columns[1].Ends, uint32(len(b.Columns[1].Data)))
	}
	return b
}

func TestStampedEqualsEncoded(t *testing.T) {
	const n, words = 250, "it's, \"q\"\t\\"
	random := rand.New(rand.NewPCG(1, 2))
	for name, second := range map[string]func(int64) int64{
		"falling":   func(v int64) int64 { return math.MaxInt64 - v },
		"repeating": func(v int64) int64 { return v / 7 },
		"random":    func(v int64) int64 { return random.Int64() },
	} {
		for _, f := range encode.Formats() {
			for _, first := range []int64{0, 1, 95, 999_999_950, math.MaxInt64 - n + 1} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, f, first), func(t *testing.T) {
					e := newEncoder(t, f, twoDerived())
					fresh := twoDerivedBlock(n, first, second, words)
					want, wantAt := whole(e, fresh)
					got, at := whole(e, twoDerivedBlock(n, 12345, func(int64) int64 { return 0 }, words))
					for from := 0; from < n; {
						rest := rows.NewBlock(twoDerived())
						rest.Reset(min(n-from, 1+random.IntN(60)))
						copy(rest.Columns[0].Ints, fresh.Columns[0].Ints[from:])
						copy(rest.Columns[2].Ints, fresh.Columns[2].Ints[from:])
						e.(encode.Stamper).Stamp(got, at, from, rest)
						from += rest.Rows
					}
					require.Equal(t, string(want), string(got))
					require.Equal(t, wantAt, at)
				})
			}
		}
	}
}

func TestStampOfEveryWidth(t *testing.T) {
	for digits := 1; digits <= encode.MaxDigits; digits++ {
		last := int64(math.MaxInt64)
		if digits < encode.MaxDigits {
			last = int64(math.Pow10(digits)) - 1
		}
		e := newEncoder(t, batch.Values, twoDerived(), digits, 0, digits)
		fresh := twoDerivedBlock(10, last-9, func(v int64) int64 { return last - v }, "x")
		want, _ := whole(e, fresh)
		got, at := whole(e, twoDerivedBlock(10, 0, func(int64) int64 { return 5 }, "x"))
		e.(encode.Stamper).Stamp(got, at, 0, fresh)
		assert.Equal(t, string(want), string(got), "%d digits", digits)
	}
}

func TestValuesThatDoNotFitTheirDigitsPanic(t *testing.T) {
	identity := func(v int64) int64 { return v }
	for _, first := range []int64{-5, 99, 100, math.MinInt64} {
		bad := twoDerivedBlock(2, first, identity, "x")
		e := newEncoder(t, batch.TSV, twoDerived(), 2, 0, 2)
		assert.Panics(t, func() { whole(e, bad) }, "%d", first)
		buf, at := whole(e, twoDerivedBlock(2, 0, identity, "x"))
		assert.Panics(t, func() { e.(encode.Stamper).Stamp(buf, at, 0, bad) }, "%d", first)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, f := range encode.Formats() {
		s := recordsSchema(f, 100)
		var records []record
		for i := range 100 {
			records = append(records, record{int64(i), -5, nasty()[i%len(nasty())], []byte("\x00raw")})
		}
		e, b := newEncoder(t, f, s), blockOf(s, records...)
		buf, at := whole(e, b)
		assert.Zero(t, testing.AllocsPerRun(10, func() {
			at.Reset()
			buf = e.AppendTail(e.AppendRows(e.AppendHead(buf[:0]), b, at))
		}), "encode %s", f)
		assert.Zero(t, testing.AllocsPerRun(10, func() { e.(encode.Stamper).Stamp(buf, at, 0, b) }), "stamp %s", f)
	}
}
