package dataset

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// TestLineitemGolden pins the values: a change here makes every recorded run unverifiable. The wanted ones come from a
// program of its own, 60 lines of Python with whole numbers of any size and its library's calendar.
func TestLineitemGolden(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		row  int64
		want []any
	}{
		{1, 0, []any{
			int64(1), int64(149950), int64(4979), int64(1), int64(3000), int64(5999850), int64(7), int64(1), "R", "F",
			int64(8887), int64(8874), int64(8907), "TAKE BACK RETURN", "SHIP", "ld have to x-ray under the e",
		}},
		{1, 3, []any{
			int64(1), int64(176446), int64(3998), int64(4), int64(4800), int64(7307712), int64(8), int64(1), "A", "F",
			int64(8904), int64(8890), int64(8924), "DELIVER IN PERSON", "AIR", "ns upon the carefully stealthy warhorses",
		}},
		{math.MaxUint64, 4001, []any{
			int64(1001), int64(115891), int64(8403), int64(2), int64(4900), int64(9343761), int64(6), int64(3), "N", "O",
			int64(10367), int64(10313), int64(10379), "COLLECT COD", "MAIL", "d poach idly sly daring d",
		}},
		{42, math.MaxInt64, []any{
			int64(1 << 61), int64(79189), int64(1697), int64(4), int64(2700), int64(3154086), int64(1), int64(4), "N", "O",
			int64(10178), int64(10187), int64(10202), "TAKE BACK RETURN", "REG AIR", "es; sly warhorses during the evenly quick b",
		}},
	} {
		assert.Equal(t, c.want, rowOf(seeded(t, "lineitem", c.seed), c.row), "seed %d row %d", c.seed, c.row)
	}
}

// TestLineitemKeepsTheSpecification checks the rules of TPC-H 4.2.3 that a row can be held to.
func TestLineitemKeepsTheSpecification(t *testing.T) {
	d := seeded(t, "lineitem", 9)
	s := d.Schema()
	b := rows.NewBlock(s)
	const n = 6_000
	d.Fill(b, 0, n)
	d.Derive(b, 0)
	ints := func(c, i int) int64 { return b.Columns[c].Ints[i] }
	text := func(c, i int) string { return string(b.Columns[c].Value(i)) }
	within := func(low, v, high int64) {
		require.True(t, low <= v && v <= high, "%d is not in %d … %d", v, low, high)
	}
	seen := map[int]map[any]int{}
	for i := range n {
		part, quantity := ints(linePart, i), ints(lineQuantity, i)
		within(1, part, 200_000)
		within(1, ints(lineSupplier, i), 10_000)
		of := false
		for k := range int64(4) {
			of = of || ints(lineSupplier, i) == (part+k*(2500+(part-1)/10_000))%10_000+1
		}
		require.True(t, of, "one of the part's four suppliers")
		within(100, quantity, 5000)
		require.Zero(t, quantity%100)
		require.Equal(t, quantity/100*(90_000+part/10%20_001+100*(part%1000)), ints(linePrice, i))
		within(0, ints(lineDiscount, i), 10)
		within(0, ints(lineTax, i), 8)

		shipped, received := ints(lineShipped, i), ints(lineReceived, i)
		within(shipped+1, received, shipped+30)
		if received <= 9298 {
			require.Contains(t, "RA", text(lineReturn, i))
		} else {
			require.Equal(t, "N", text(lineReturn, i))
		}
		require.Equal(t, map[bool]string{true: "O", false: "F"}[shipped > 9298], text(lineStatus, i))
		require.GreaterOrEqual(t, len(text(lineComment, i)), 10)
		// All lines of an order have an order date in common: from 8035 to 10440.
		if i%orderLines == 0 {
			earliest, latest := int64(8035), int64(10_440)
			for k := i; k < i+orderLines; k++ {
				earliest = max(earliest, ints(lineShipped, k)-121, ints(lineCommitted, k)-90)
				latest = min(latest, ints(lineShipped, k)-1, ints(lineCommitted, k)-30)
				require.Equal(t, int64(k/orderLines)+1, ints(lineOrder, k))
				require.Equal(t, int64(k%orderLines)+1, ints(lineNumber, k))
			}
			require.LessOrEqual(t, earliest, latest, "lines from %d on", i)
		}
		for c, column := range s.Columns {
			var v any
			if column.Type.Variable() {
				require.LessOrEqual(t, len(text(c, i)), column.MaxBytes)
				require.False(t, strings.ContainsAny(text(c, i), "\x00\x01\x02\t\n\r\x1A\"',\\"), "%s", column.Name)
				v = text(c, i)
			} else {
				v = ints(c, i)
			}
			if seen[c] == nil {
				seen[c] = map[any]int{}
			}
			seen[c][v]++
		}
	}
	for c, different := range map[int]int{
		lineQuantity: 50, lineDiscount: 11, lineTax: 9, lineReturn: 3, lineStatus: 2, lineInstruction: 4, lineMode: 7,
	} {
		assert.Len(t, seen[c], different, "%s", s.Columns[c].Name)
	}
	assert.Greater(t, len(seen[linePart]), 5_800)
	assert.Greater(t, len(seen[lineComment]), 5_800)
}

// TestComments looks at every piece there is.
func TestComments(t *testing.T) {
	c := newComments()
	require.NotContains(t, string(c), "  ")
	for place := range commentPlaces {
		for _, n := range []int{shortComment, 11, 27, longComment} {
			if piece := c.piece(place, n); len(piece) != n || piece[0] == ' ' || piece[n-1] == ' ' {
				t.Fatalf("%q at %d", piece, place)
			}
		}
	}
}
