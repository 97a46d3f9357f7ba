package verify

import (
	"context"
	"fmt"
	"math/big"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// count checks every batch by one scan, and the lengths of variable columns if bytes is not nil.
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
	seen := make([]bool, batches)
	err := c.Count(ctx, loader.Grouping{KeyRange: e.keys(), Size: e.BatchRows, Lengths: bytes != nil}, func(b loader.Bucket) error {
		if b.Number < 0 || b.Number >= batches {
			return fmt.Errorf("the back-end counted batch %d of a run of %d", b.Number, batches)
		}
		if seen[b.Number] {
			return fmt.Errorf("the back-end counted batch %d twice", b.Number)
		}
		seen[b.Number] = true

		want := whole
		if b.Number == batches-1 {
			want = last
		}
		r.FoundRows += b.Rows
		if reason := want.check(b); reason != "" {
			r.addBatch(e.bad(b.Number, b.Rows, reason, ""))
			return nil
		}
		detail, err := bytes.check(b)
		if detail != "" {
			r.addBatch(e.bad(b.Number, b.Rows, Differs, detail))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("verify: counting rows: %w", err)
	}
	for n := range batches {
		if !seen[n] {
			r.addBatch(e.bad(n, 0, Missing, ""))
		}
	}
	return nil
}

func (e Expect) bad(number, found int64, reason Reason, detail string) report.BadBatch {
	first := e.FirstKey + number*e.BatchRows
	rows := e.size(number)
	return report.BadBatch{
		Number: number, FirstKey: first, LastKey: first + rows - 1, Rows: rows, Found: found, Reason: string(reason), Detail: detail,
	}
}

// shape is the bucket of rows 0 … rows−1, each once.
type shape struct {
	rows         int64
	sum, squares *big.Int
}

// shapeOf computes n(n−1)/2 and (n−1)n(2n−1)/6. Both exceed 64 bits, the squares from three million rows on.
func shapeOf(n int64) shape {
	rows, less, twice := big.NewInt(n), big.NewInt(n-1), big.NewInt(2*n-1)
	sum := new(big.Int).Mul(rows, less)
	squares := new(big.Int).Mul(sum, twice)
	return shape{rows: n, sum: sum.Rsh(sum, 1), squares: squares.Quo(squares, big.NewInt(6))}
}

// check returns "" for the right bucket.
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

// objects checks that every batch of the run is in the store exactly once, with the acknowledged length. Rows of such
// batches count as found. An object of the right length may hold other bytes; the store's checksum of the upload guards
// against that.
func (r *Result) objects(ctx context.Context, inventory loader.Inventory, e Expect) error {
	const maxStrange = 3
	batches := e.batches()
	found := make(map[int64]object)
	err := inventory.Objects(ctx, e.Run, func(name string, number, bytes int64) error {
		if number < 0 || number >= batches {
			if len(r.Strange) < maxStrange {
				r.Strange = append(r.Strange, name)
			}
			return nil
		}
		found[number] = object{times: found[number].times + 1, bytes: bytes}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify: listing the objects of run %s: %w", e.Run, err)
	}
	for n := range batches {
		acked, known := e.Length(n)
		if reason, detail := found[n].check(acked, known); reason != "" {
			r.addBatch(e.bad(n, 0, reason, detail))
		} else {
			r.FoundRows += e.size(n)
		}
	}
	return nil
}

// object is a batch in the store's listing.
type object struct{ times, bytes int64 }

func (o object) check(acked int64, known bool) (reason Reason, detail string) {
	switch {
	case o.times == 0:
		return Missing, "it has no object"
	case o.times > 1:
		return Doubled, fmt.Sprintf("%d objects hold it", o.times)
	case !known:
		return Differs, fmt.Sprintf("its object has %d bytes, and its acknowledged length is not in the journal", o.bytes)
	case o.bytes < acked:
		return Short, fmt.Sprintf("its object has %d of %d acknowledged bytes", o.bytes, acked)
	case o.bytes > acked:
		return Differs, fmt.Sprintf("its object has %d bytes, more than the %d acknowledged", o.bytes, acked)
	}
	return "", ""
}
