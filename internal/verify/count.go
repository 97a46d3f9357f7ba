package verify

import (
	"context"
	"fmt"
	"math/big"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// count checks every batch by one scan, and if mix is not nil the mix of its rows and the measures of its columns, which
// are regenerated meanwhile. Where the run has very many batches, several are counted as one, and by another scan one by one if
// they are wrong.
func (r *Result) count(ctx context.Context, c loader.Counter, e Expect, mix *loader.Mix) error {
	together, err := e.together(mix)
	if err != nil {
		return err
	}
	buckets := e.Joined(together)
	g := loader.Grouping{Size: buckets.BatchRows, Mix: mix, Measures: mix != nil}
	g.First, g.Last = e.Keys(0, e.Batches())
	var sums *measures
	var found map[int64]*loader.Bucket
	both, within := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		found, err = scan(within, c, e, g)
		return err
	})
	both.Go(func() (err error) {
		if mix != nil {
			sums, err = measure(within, e, measureBytes)
		}
		return err
	})
	if err := both.Wait(); err != nil {
		return err
	}
	check := e.checker(g, together, sums)
	var bad []report.BadBatch
	for n := range buckets.Batches() {
		b, counted := found[n]
		if counted {
			r.FoundRows += b.Rows
		} else {
			b = &loader.Bucket{Number: n}
		}
		wrong, err := check(*b)
		if err != nil {
			return err
		}
		if wrong != nil {
			bad = append(bad, *wrong)
		}
	}
	if together == 1 || len(bad) == 0 {
		for _, b := range bad {
			r.addBatch(b)
		}
		return nil
	}
	g.First, g.Last, g.Size = bad[0].FirstKey, bad[len(bad)-1].LastKey, e.BatchRows
	before := *r
	return e.ask(ctx, "rows of wrong batches", func(ctx context.Context) error {
		*r = before
		return r.recount(ctx, c, e, g, sums)
	})
}

// maxBuckets bounds the memory of a proof, and what the server has to group.
const maxBuckets = 1 << 16

// together returns how many batches are counted as one.
func (e Expect) together(mix *loader.Mix) (int64, error) {
	n := max((e.Batches()+maxBuckets-1)/maxBuckets, 1)
	if mix == nil {
		return n, nil
	}
	if e.BatchRows > loader.MaxMixed {
		return 0, fmt.Errorf("verify: batches of %d rows are too large for %s, which takes up to %d: take %s", e.BatchRows, Full, loader.MaxMixed, Count)
	}
	return min(n, loader.MaxMixed/e.BatchRows), nil
}

// recount checks the batches of a range one by one.
func (r *Result) recount(ctx context.Context, c loader.Counter, e Expect, g loader.Grouping, sums *measures) error {
	first := e.BatchOf(g.First)
	check := e.checker(g, 1, sums)
	seen, err := count(ctx, c, g, func(b loader.Bucket) error {
		b.Number += first
		wrong, err := check(b)
		if wrong != nil {
			r.addBatch(*wrong)
		}
		return err
	})
	if err != nil {
		return err
	}
	for n, there := range seen {
		if !there {
			r.addBatch(e.bad(first+int64(n), 1, 0, Missing, ""))
		}
	}
	return nil
}

// checker returns what is wrong with a bucket of so many batches, nil for the right one. The number is the bucket's among
// those of the whole run.
func (e Expect) checker(g loader.Grouping, together int64, sums *measures) func(loader.Bucket) (*report.BadBatch, error) {
	buckets := e.Joined(together)
	last := buckets.Batches() - 1
	_, size := buckets.Span(0)
	_, left := buckets.Span(last)
	whole, rest := shapeOf(size, g.Mix), shapeOf(left, g.Mix)
	return func(b loader.Bucket) (*report.BadBatch, error) {
		want := whole
		if b.Number == last {
			want = rest
		}
		reason, detail, err := want.check(b), "", error(nil)
		if reason == "" {
			if detail, err = sums.check(b, together); detail != "" {
				reason = Differs
			}
		}
		if err != nil || reason == "" {
			return nil, err
		}
		bad := e.bad(b.Number*together, together, b.Rows, reason, detail)
		return &bad, nil
	}
}

// bad describes a batch, or so many from a number on.
func (e Expect) bad(number, batches, found int64, reason Reason, detail string) report.BadBatch {
	first, last := e.Keys(number, number+batches)
	return report.BadBatch{
		Number: number, FirstKey: first, LastKey: last, Rows: last - first + 1, Found: found, Reason: string(reason), Detail: detail,
	}
}

// shape is the bucket of rows 0 … rows−1, each once.
type shape struct {
	rows              int64
	sum, squares, mix *big.Int // mix: nil if not asked for
}

// shapeOf computes n(n−1)/2 and (n−1)n(2n−1)/6, which exceed 64 bits, the squares from three million rows on; and the
// mix, at some nanoseconds a row.
func shapeOf(n int64, mix *loader.Mix) shape {
	rows, less, twice := big.NewInt(n), big.NewInt(n-1), big.NewInt(2*n-1)
	sum := new(big.Int).Mul(rows, less)
	squares := new(big.Int).Mul(sum, twice)
	s := shape{rows: n, sum: sum.Rsh(sum, 1), squares: squares.Quo(squares, big.NewInt(6))}
	if mix != nil {
		s.mix = mix.Sum(n)
	}
	return s
}

// check returns "" for the right bucket.
func (s shape) check(b loader.Bucket) Reason {
	switch {
	case b.Rows == 0:
		return Missing
	case b.Rows < s.rows:
		return Short
	case b.Rows > s.rows:
		return Doubled
	case b.Min != 0 || b.Max != s.rows-1 || b.Sum.Cmp(s.sum) != 0 || b.Squares.Cmp(s.squares) != 0:
		return Wrong
	case s.mix != nil && b.Mix.Cmp(s.mix) != 0:
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
	batches := e.Batches()
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
			r.addBatch(e.bad(n, 1, 0, reason, detail))
		} else {
			_, rows := e.Span(n)
			r.FoundRows += rows
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
