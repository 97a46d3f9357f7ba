package verify

import (
	"context"
	"math/big"
	"slices"
	"strconv"
	"sync"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// run checks what l can do, of which the server has acknowledged so many rows.
func run(ctx context.Context, l loader.Loader, m Mode, e Expect, acked int64) (Result, error) {
	e.Acked = acked
	return Run(ctx, loader.FeaturesOf(l), m, e)
}

// mute is a loader that can neither count nor fetch. Its methods are never called.
type mute struct{ loader.Loader }

// counter can count and not fetch.
type counter struct {
	mute
	count func(g loader.Grouping, f func(loader.Bucket) error) error
}

func (c counter) Count(_ context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	return c.count(g, f)
}

func (c counter) Parts(context.Context, loader.KeyRange, int) ([]string, error) {
	return []string{""}, nil
}

// table is a database's table in memory, counted row by row as a server would.
type table struct {
	mute
	schema rows.Schema
	rows   []row
	parts  int // what Parts splits it into, at most; 0 is one
	mu     sync.Mutex
	scans  int
}

type row struct {
	number int64
	values []any
}

// load puts every row of a run into a new table.
func load(e Expect) *table {
	t := &table{schema: e.Dataset.Schema()}
	for n := range e.Rows {
		t.insert(e, n)
	}
	return t
}

func (t *table) insert(e Expect, n int64) {
	block := rows.NewBlock(t.schema)
	dataset.Row(block, e.Dataset, e.FirstKey, n, e.Distinct)
	values := make([]any, len(t.schema.Columns))
	for i, v := range block.Columns {
		values[i] = v.At(0)
		if value, is := values[i].([]byte); is {
			values[i] = slices.Clone(value)
		}
	}
	t.rows = append(t.rows, row{e.FirstKey + n, values})
}

func (t *table) scan() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scans++
}

// remove takes out one row with the number.
func (t *table) remove(number int64) {
	i := slices.IndexFunc(t.rows, func(r row) bool { return r.number == number })
	t.rows = slices.Delete(t.rows, i, i+1)
}

// Parts splits the table by the order of its rows, so that parts share buckets.
func (t *table) Parts(_ context.Context, _ loader.KeyRange, n int) (parts []string, err error) {
	for first := range t.parts {
		parts = append(parts, strconv.Itoa(first))
	}
	if t.parts == 0 {
		parts = []string{""}
	}
	return parts[:min(n, len(parts))], nil
}

func (t *table) Count(_ context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	t.scan()
	buckets := make(map[int64]*loader.Bucket)
	part, err := strconv.Atoi(g.Part)
	for i, row := range t.rows {
		if row.number < g.First || row.number > g.Last || err == nil && i%t.parts != part {
			continue
		}
		number, offset := (row.number-g.First)/g.Size, (row.number-g.First)%g.Size
		b := buckets[number]
		if b == nil {
			b = &loader.Bucket{Number: number, Min: offset, Sum: new(big.Int), Squares: new(big.Int), Mix: new(big.Int)}
			buckets[number] = b
		}
		o := big.NewInt(offset)
		b.Rows++
		b.Min, b.Max = min(b.Min, offset), max(b.Max, offset)
		b.Sum.Add(b.Sum, o)
		b.Squares.Add(b.Squares, o.Mul(o, o))
		if g.Mix != nil {
			b.Mix.Add(b.Mix, big.NewInt(g.Mix.Of(offset)))
		}
		for i, m := range t.schema.Measures() {
			if g.Measures && i == len(b.Measures) {
				b.Measures = append(b.Measures, new(big.Int))
			}
			if g.Measures {
				b.Measures[i].Add(b.Measures[i], big.NewInt(m.Value(row.values[m.Column])))
			}
		}
	}
	for _, b := range buckets { // in no order
		if err := f(*b); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) Fetch(_ context.Context, numbers []int64, f func(int64, []any) error) error {
	t.scan()
	for _, row := range t.rows {
		if slices.Contains(numbers, row.number) {
			if err := f(row.number, row.values); err != nil {
				return err
			}
		}
	}
	return nil
}
