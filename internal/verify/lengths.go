package verify

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

const (
	// measureBytes bounds the column data that Full regenerates to know how long the values of a batch are. It is one
	// or two seconds' work, and covers every template of a run with the default number of distinct rows.
	measureBytes = 2 << 30
	// pieceBytes is how much of it is regenerated at once: little enough for the CPU's caches.
	pieceBytes = 1 << 20
)

// lengths knows how many bytes the variable columns of a batch hold in sum.
//
// Batches repeat every cycle of them, so only so many are regenerated, and where even those are more than the bound
// allows (a terabyte of all distinct rows) an even spread of them. Trusting the schema's MaxBytes instead would be
// free, and wrong for every dataset whose values are not all of one length.
type lengths struct {
	columns  []int    // the variable columns' places in the schema
	names    []string // and names
	cycle    int64
	template map[int64][]int64 // by batch number modulo cycle: bytes of each variable column
	last     int64             // number of the last batch, …
	lastSums []int64           // … which may be short and has sums of its own; nil when it is not measured
}

func measure(ctx context.Context, e Expect, bound int64) (*lengths, error) {
	schema := e.Dataset.Schema()
	l := &lengths{cycle: e.batches(), last: e.batches() - 1, template: make(map[int64][]int64)}
	if e.Distinct > 0 && e.Distinct < e.Rows {
		l.cycle = e.Distinct / e.BatchRows
	}
	for i, c := range schema.Columns {
		if c.Type.Variable() {
			l.columns, l.names = append(l.columns, i), append(l.names, c.Name)
		}
	}
	affordable := bound / schema.MaxRowBytes() / e.BatchRows
	if len(l.columns) == 0 || affordable == 0 || e.Rows == 0 {
		return l, nil
	}

	block := rows.NewBlock(schema)
	var err error
	for _, t := range spread(l.cycle, affordable, e.Seed) {
		if l.template[t], err = l.sum(ctx, e, block, t*e.BatchRows, e.size(t)); err != nil {
			return nil, err
		}
	}
	l.lastSums, err = l.sum(ctx, e, block, l.last%l.cycle*e.BatchRows, e.size(l.last))
	return l, err
}

// sum regenerates n rows from dataset row first on and sums the bytes of each variable column. Derived ones belong to
// the run's row number, which is another in every cycle; their values are of one length (rows.Column.Derived), so that
// of the first cycle tells them all.
func (l *lengths) sum(ctx context.Context, e Expect, block *rows.Block, first, n int64) ([]int64, error) {
	sums := make([]int64, len(l.columns))
	piece := max(pieceBytes/e.Dataset.Schema().MaxRowBytes(), 1)
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("verify: regenerating rows: %w", err)
		}
		m := min(n, piece)
		e.Dataset.Fill(block, first, int(m))
		e.Dataset.Derive(block, e.FirstKey+first)
		for i, c := range l.columns {
			sums[i] += int64(len(block.Columns[c].Data))
		}
		first, n = first+m, n-m
	}
	return sums, nil
}

// check compares a bucket that holds the right rows. It returns "" when all bytes are there, and false when the batch
// is not among the measured ones. A nil receiver measured none.
func (l *lengths) check(b loader.Bucket) (detail string, measured bool, err error) {
	if l == nil {
		return "", false, nil
	}
	want := l.template[b.Number%l.cycle]
	if b.Number == l.last {
		want = l.lastSums
	}
	if want == nil {
		return "", false, nil
	}
	if len(b.Lengths) != len(want) {
		return "", false, fmt.Errorf("the back-end summed %d columns where %d are of variable length", len(b.Lengths), len(want))
	}
	for i, bytes := range want {
		if b.Lengths[i] != bytes {
			return fmt.Sprintf("column %s holds %d bytes instead of %d", l.names[i], b.Lengths[i], bytes), true, nil
		}
	}
	return "", true, nil
}

// spread chooses k different numbers below n, ascending: one out of each of k stretches of nearly equal length, so
// that no part of the table is left out by chance. k ≥ n gives all.
func spread(n, k int64, seed uint64) []int64 {
	if k > n {
		k = n
	}
	if k <= 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(seed, 0))
	chosen := make([]int64, k)
	length, longer := n/k, n%k // the first n mod k stretches are longer by one
	start := int64(0)
	for i := range chosen {
		m := length
		if int64(i) < longer {
			m++
		}
		chosen[i] = start + random.Int64N(m)
		start += m
	}
	return chosen
}
