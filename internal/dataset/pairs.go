package dataset

import (
	"math/bits"

	"github.com/terapush/terapush/pkg/rows"
)

const pairsName = "pairs"

// pairs has the smallest rows that tables have: a key and two small numbers. As text with a key of 7 digits a row takes 17
// bytes, so it shows what a database, a driver or terapush spends on each row, which documents hide behind bytes.
type pairs struct {
	schema rows.Schema
	start  uint64 // state of the stream at row 0
}

// Bounds of the drawn columns, exclusive.
const (
	pairsR = 1_000_000
	pairsS = 10
)

func newPairs(o Options) Dataset {
	return &pairs{
		schema: rows.Schema{
			Dataset: pairsName,
			Columns: []rows.Column{
				{Name: "k", Type: rows.Int64, Derived: true}, {Name: "r", Type: rows.Int64}, {Name: "s", Type: rows.Int64},
			},
			Number: []rows.Term{{Column: 0, Minus: 0, Times: 1}},
		},
		start: mix(o.Seed),
	}
}

func (d *pairs) Schema() rows.Schema { return d.schema }

// Fill takes one word of the SplitMix64 stream for each row.
func (d *pairs) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	r, s := dst.Columns[1].Ints[:n], dst.Columns[2].Ints[:n]
	state := d.start + uint64(first)*gamma
	for i := range r {
		state += gamma
		high, rest := bits.Mul64(mix(state), pairsR)
		r[i] = int64(high)
		high, _ = bits.Mul64(rest, pairsS)
		s[i] = int64(high)
	}
}

// Derive numbers the pairs: the key is the row number.
func (d *pairs) Derive(dst *rows.Block, first int64) { count(dst.Columns[0].Ints, first) }
