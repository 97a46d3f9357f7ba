package loadertest

import (
	"cmp"
	"context"
	"math/big"

	"github.com/terapush/terapush/pkg/loader"
)

// Parts implements loader.Counter.
func (l *memoryLoader) Parts(context.Context, loader.KeyRange, int) ([]string, error) {
	return []string{""}, nil
}

func (l *memoryLoader) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	l.mu.Lock()
	buckets := l.buckets(g)
	l.mu.Unlock()
	for _, b := range buckets {
		if !g.Measures {
			b.Measures = nil
		}
		if err := f(*b); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (m *Memory) buckets(g loader.Grouping) map[int64]*loader.Bucket {
	buckets, r, size := make(map[int64]*loader.Bucket), g.KeyRange, g.Size
	for _, a := range m.applied {
		first, last := max(a.First, r.First), min(a.First+a.Rows-1, r.Last)
		for first <= last {
			n := (first - r.First) / size
			start := r.First + n*size
			end := min(start+size-1, last)
			b := buckets[n]
			if b == nil {
				b = &loader.Bucket{Number: n, Min: size, Max: -1, Sum: new(big.Int), Squares: new(big.Int)}
				for range m.schema.Measures() {
					b.Measures = append(b.Measures, new(big.Int))
				}
				buckets[n] = b
			}
			m.add(b, start, first, end)
			if g.Mix != nil {
				mix := new(big.Int).Sub(g.Mix.Sum(end-start+1), g.Mix.Sum(first-start))
				b.Mix = mix.Add(mix, cmp.Or(b.Mix, new(big.Int)))
			}
			first = end + 1
		}
	}
	return buckets
}

// add counts the rows first … last into the bucket that begins at row start.
func (m *Memory) add(b *loader.Bucket, start, first, last int64) {
	low, high := first-start, last-start
	b.Rows += last - first + 1
	b.Min, b.Max = min(b.Min, low), max(b.Max, high)
	b.Sum.Add(b.Sum, new(big.Int).Sub(sum(high), sum(low-1)))
	b.Squares.Add(b.Squares, new(big.Int).Sub(squares(high), squares(low-1)))
	if m.Row == nil {
		return
	}
	for n := first; n <= last; n++ {
		values := m.Row(n)
		for i, one := range m.schema.Measures() {
			b.Measures[i].Add(b.Measures[i], big.NewInt(one.Value(values[one.Column])))
		}
	}
}

// sum returns 0 + 1 + … + n, squares the same of the squares.
func sum(n int64) *big.Int {
	b := big.NewInt(n)
	return b.Div(b.Mul(b, big.NewInt(n+1)), big.NewInt(2))
}

func squares(n int64) *big.Int {
	b := big.NewInt(2*n + 1)
	return b.Div(b.Mul(b, sum(n)), big.NewInt(3))
}

func (l *memoryLoader) Fetch(ctx context.Context, numbers []int64, f func(int64, []any) error) error {
	l.mu.Lock()
	var found []int64
	for _, n := range numbers {
		for _, a := range l.applied {
			if l.Row != nil && a.First <= n && n < a.First+a.Rows {
				found = append(found, n)
			}
		}
	}
	l.mu.Unlock()
	for _, n := range found {
		if err := f(n, l.Row(n)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (l *memoryLoader) Stored(context.Context) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(0)
	for _, a := range l.applied {
		n += a.Rows
	}
	return n * max(l.schema.MaxRowBytes(), 1), nil
}
