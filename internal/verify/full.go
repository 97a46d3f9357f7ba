package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func (r *Result) full(ctx context.Context, can loader.Features, e Expect) error {
	mix := loader.NewMix(e.Seed)
	if err := r.count(ctx, can.Counter, e, &mix); err != nil {
		return err
	}
	return r.compare(ctx, can, e)
}

const (
	// measureBytes bounds the column data that Full regenerates to know the lengths of values. It takes one or two
	// seconds, and covers every template of a run with the default number of distinct rows.
	measureBytes = 2 << 30
	// pieceBytes is regenerated at once, to stay in the CPU's caches.
	pieceBytes = 1 << 20
)

// lengths are the bytes of each variable column of a batch. Batches repeat after a cycle, of which as many are
// regenerated as measureBytes allows, evenly spread. The schema's MaxBytes is no substitute where values differ in
// length.
type lengths struct {
	columns  []int    // the variable columns' indexes in the schema
	names    []string // and their names
	cycle    int64
	template map[int64][]int64 // by batch number modulo cycle
	last     int64             // number of the last batch, which may be short
	lastSums []int64           // nil: not measured
}

func measure(ctx context.Context, e Expect, bound int64) (*lengths, error) {
	schema := e.Dataset.Schema()
	l := &lengths{cycle: e.Cycle(e.Distinct), last: e.Batches() - 1, template: make(map[int64][]int64)}
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
		if l.template[t], err = l.sum(ctx, e, block, t, t); err != nil {
			return nil, err
		}
	}
	l.lastSums, err = l.sum(ctx, e, block, l.last%l.cycle, l.last)
	return l, err
}

// sum regenerates a batch of a template, and sums the bytes of each variable column. Derived columns differ in every
// cycle, but their values have one length (rows.Column.Derived).
func (l *lengths) sum(ctx context.Context, e Expect, block *rows.Block, template, batch int64) ([]int64, error) {
	first := e.Before(template)
	_, n := e.Span(batch)
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

// check compares a bucket of so many batches that holds the right rows. It returns "" if all bytes are there or not all of
// its batches were measured. A nil receiver measured none.
func (l *lengths) check(b loader.Bucket, together int64) (detail string, err error) {
	if l == nil || len(l.columns) == 0 {
		return "", nil
	}
	if len(b.Lengths) != len(l.columns) {
		return "", fmt.Errorf("the back-end summed %d columns where %d are of variable length", len(b.Lengths), len(l.columns))
	}
	want := make([]int64, len(l.columns))
	for n := b.Number * together; n < (b.Number+1)*together && n <= l.last; n++ {
		sums := l.template[n%l.cycle]
		if n == l.last {
			sums = l.lastSums
		}
		if sums == nil {
			return "", nil
		}
		for i, sum := range sums {
			want[i] += sum
		}
	}
	for i, bytes := range want {
		if b.Lengths[i] != bytes {
			return fmt.Sprintf("column %s holds %d bytes instead of %d", l.names[i], b.Lengths[i], bytes), nil
		}
	}
	return "", nil
}

// spread returns k numbers below n, ascending: a random one from each of k nearly equal stretches, so that no part of
// the table is left out by chance. k ≥ n gives all.
func spread(n, k int64, seed uint64) []int64 {
	if k = min(k, n); k <= 0 {
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

// compare reads a sample of rows back and compares each with the regenerated row: those with numbers from all over the
// run, which one statement fetches, since without an index each statement scans the table; or the back-end's own sample,
// which needs no scan, if it is at least half as large.
func (r *Result) compare(ctx context.Context, can loader.Features, e Expect) error {
	keys := spread(e.Rows, int64(cmp.Or(e.VerifyRows, DefaultVerifyRows)), e.Seed)
	if len(keys) == 0 {
		return nil
	}
	for i := range keys {
		keys[i] += e.FirstKey
	}
	before := *r
	return e.ask(ctx, "sample", func(ctx context.Context) error {
		if can.Sampler != nil {
			*r = before
			if err := r.sample(ctx, can.Sampler, e, len(keys)); err != nil || r.SampledRows >= int64(len(keys)+1)/2 {
				return err
			}
		}
		*r = before
		return r.fetch(ctx, can.Fetcher, e, keys)
	})
}

// sample compares rows of the back-end's choice. Whether any is missing or doubled is what the count says.
func (r *Result) sample(ctx context.Context, s loader.Sampler, e Expect, n int) error {
	wanted := rows.NewBlock(e.Dataset.Schema())
	err := s.Sample(ctx, n, func(key int64, values []any) error {
		if key < e.FirstKey || key-e.FirstKey >= e.Rows { // another run's
			return nil
		}
		r.SampledRows++
		return r.compareRow(e, wanted, key, values)
	})
	if err != nil {
		return fmt.Errorf("verify: reading rows back: %w", err)
	}
	return nil
}

func (r *Result) fetch(ctx context.Context, f loader.Fetcher, e Expect, keys []int64) error {
	r.SampledRows = int64(len(keys))
	times := make([]int, len(keys)) // how often each row was found
	wanted := rows.NewBlock(e.Dataset.Schema())
	err := f.Fetch(ctx, keys, func(key int64, values []any) error {
		i, asked := slices.BinarySearch(keys, key)
		if !asked {
			return fmt.Errorf("the back-end returned row %d, which was not asked for", key)
		}
		times[i]++
		return r.compareRow(e, wanted, key, values)
	})
	if err != nil {
		return fmt.Errorf("verify: reading rows back: %w", err)
	}
	for i, n := range times {
		switch {
		case n == 0:
			r.addRow(BadRow{Key: keys[i], Reason: Missing})
		case n > 1:
			r.addRow(BadRow{Key: keys[i], Reason: Doubled})
		}
	}
	return nil
}

// compareRow compares a row with the regenerated one, for which wanted has room.
func (r *Result) compareRow(e Expect, wanted *rows.Block, key int64, values []any) error {
	dataset.Row(wanted, e.Dataset, e.FirstKey, key-e.FirstKey, e.Distinct)
	difference, err := differ(e.Dataset.Schema(), wanted, values)
	if difference != nil {
		difference.Key = key
		r.addRow(*difference)
	}
	return err
}

// differ returns the first column in which values differ from the row in the block, nil if there is none.
func differ(s rows.Schema, want *rows.Block, values []any) (*BadRow, error) {
	if len(values) != len(s.Columns) {
		return nil, fmt.Errorf("the back-end returned %d columns instead of %d", len(values), len(s.Columns))
	}
	for i, c := range s.Columns {
		detail, offset := "", 0
		switch found := values[i].(type) {
		case nil:
			detail = "it is NULL"
		case int64:
			if c.Type.Variable() {
				return nil, fmt.Errorf("the back-end returned a number for column %s of type %s", c.Name, c.Type)
			}
			if w := want.Columns[i].Ints[0]; found != w {
				detail = fmt.Sprintf("%s instead of %s", c.Text(found), c.Text(w))
			}
		case []byte:
			if !c.Type.Variable() {
				return nil, fmt.Errorf("the back-end returned bytes for column %s of type %s", c.Name, c.Type)
			}
			detail, offset = differBytes(want.Columns[i].Value(0), found)
		default:
			return nil, fmt.Errorf("the back-end returned a %T for column %s", found, c.Name)
		}
		if detail != "" {
			return &BadRow{Reason: Differs, Column: c.Name, Offset: offset, Detail: detail}, nil
		}
	}
	return nil, nil
}

// differBytes returns the first difference, "" if there is none.
func differBytes(want, found []byte) (detail string, offset int) {
	if bytes.Equal(want, found) {
		return "", 0
	}
	for offset < min(len(want), len(found)) && want[offset] == found[offset] {
		offset++
	}
	if offset < min(len(want), len(found)) {
		detail = fmt.Sprintf("0x%02x instead of 0x%02x", found[offset], want[offset])
	}
	if len(want) != len(found) {
		length := fmt.Sprintf("%d bytes long instead of %d", len(found), len(want))
		if detail == "" {
			return length, offset
		}
		detail += ", " + length
	}
	return detail, offset
}
