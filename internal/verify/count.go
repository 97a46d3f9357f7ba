package verify

import (
	"context"
	"fmt"
	"math/big"

	"github.com/terapush/terapush/pkg/loader"
)

// count checks every batch by one scan. bytes says what the variable columns of a batch must hold; nil: not compared.
func (r *Result) count(ctx context.Context, c loader.Counter, e Expect, bytes *lengths) error {
	before := *r
	return e.ask(ctx, "rows", func(ctx context.Context) error {
		*r = before
		return r.scan(ctx, c, e, bytes)
	})
}

func (r *Result) scan(ctx context.Context, c loader.Counter, e Expect, bytes *lengths) error {
	batches := e.batches()
	whole, last := shapeOf(e.BatchRows), shapeOf(e.size(max(batches-1, 0)))
	seen := make([]uint64, (batches+63)/64) // one bit a batch: 128 KiB for a million

	err := c.Count(ctx, loader.Grouping{KeyRange: e.keys(), Size: e.BatchRows, Lengths: bytes != nil}, func(b loader.Bucket) error {
		if b.Number < 0 || b.Number >= batches {
			return fmt.Errorf("the back-end counted batch %d of a run of %d", b.Number, batches)
		}
		word, bit := b.Number/64, uint64(1)<<(b.Number%64)
		if seen[word]&bit != 0 {
			return fmt.Errorf("the back-end counted batch %d twice", b.Number)
		}
		seen[word] |= bit

		want := whole
		if b.Number == batches-1 {
			want = last
		}
		r.FoundRows += b.Rows
		if reason := want.check(b); reason != "" {
			r.addBatch(e.bad(b.Number, b.Rows, reason, ""))
			return nil
		}
		detail, measured, err := bytes.check(b)
		if measured {
			r.MeasuredBatches++
		}
		if detail != "" {
			r.addBatch(e.bad(b.Number, b.Rows, Differs, detail))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("verify: counting rows: %w", err)
	}
	for n := range batches {
		if seen[n/64]&(1<<(n%64)) == 0 {
			r.addBatch(e.bad(n, 0, Missing, ""))
		}
	}
	return nil
}

func (e Expect) bad(number, found int64, reason Reason, detail string) Bad {
	first := e.FirstKey + number*e.BatchRows
	rows := e.size(number)
	return Bad{Number: number, FirstKey: first, LastKey: first + rows - 1, Rows: rows, Found: found, Reason: reason, Detail: detail}
}

// shape is what a bucket of rows 0 … rows−1 looks like when each is there once.
type shape struct {
	rows         int64
	sum, squares *big.Int
}

// shapeOf computes n(n−1)/2 and (n−1)n(2n−1)/6. Both leave 64 bits behind: the squares at three million rows.
func shapeOf(n int64) shape {
	rows, less, twice := big.NewInt(n), big.NewInt(n-1), big.NewInt(2*n-1)
	sum := new(big.Int).Mul(rows, less)
	squares := new(big.Int).Mul(sum, twice)
	return shape{rows: n, sum: sum.Rsh(sum, 1), squares: squares.Quo(squares, big.NewInt(6))}
}

// check returns "" for a bucket that is as it must be.
func (s shape) check(b loader.Bucket) Reason {
	switch {
	case b.Rows < s.rows:
		return Short
	case b.Rows > s.rows:
		return Doubled
	case b.Min != 0 || b.Max != s.rows-1 || b.Sum.Cmp(s.sum) != 0 || b.Squares.Cmp(s.squares) != 0:
		return Wrong
	default:
		return ""
	}
}
