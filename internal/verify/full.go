package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func (r *Result) full(ctx context.Context, can loader.Features, e Expect) error {
	mix := loader.NewMix(e.Seed)
	if err := r.count(ctx, can.Counter, e, &mix); err != nil {
		return err
	}
	for _, c := range e.Dataset.Schema().Columns {
		if opaque(c) {
			r.NotCompared = append(r.NotCompared, fmt.Sprintf("%s (%s)", c.Name, c.SQL))
		}
	}
	return r.compare(ctx, can, e)
}

const (
	// measureBytes bounds the column data that Full regenerates to measure it. It takes one or two seconds, and covers
	// every template of a run with the default number of distinct rows.
	measureBytes = 2 << 30
	// pieceBytes is regenerated at once, to stay in the CPU's caches.
	pieceBytes = 1 << 20
)

// measures are those of the schema over every batch. Batches repeat after a cycle, of which as many are regenerated as
// measureBytes allows, evenly spread.
type measures struct {
	schema   rows.Schema
	all      []rows.Measure
	cycle    int64
	template map[int64][]*big.Int // by batch number modulo cycle
	last     int64                // number of the last batch, which may be short
	lastSums []*big.Int           // nil: not measured
}

func measure(ctx context.Context, e Expect, bound int64) (*measures, error) {
	schema := e.Dataset.Schema()
	l := &measures{
		schema: schema, all: schema.Measures(),
		cycle: e.Cycle(e.Distinct), last: e.Batches() - 1, template: make(map[int64][]*big.Int),
	}
	affordable := bound / max(schema.RowBytes(), 1) / e.BatchRows
	if len(l.all) == 0 || affordable == 0 || e.Rows == 0 {
		return l, nil
	}

	block := rows.NewBlock(schema)
	var err error
	for _, t := range Spread(l.cycle, affordable, e.Seed) {
		if l.template[t], err = l.sum(ctx, e, block, t, t); err != nil {
			return nil, err
		}
	}
	l.lastSums, err = l.sum(ctx, e, block, l.last%l.cycle, l.last)
	return l, err
}

// sum regenerates a batch of a template, and measures it. Derived columns differ in every cycle, but their values have
// one length (rows.Column.Derived), and nothing else is measured of them.
func (l *measures) sum(ctx context.Context, e Expect, block *rows.Block, template, batch int64) ([]*big.Int, error) {
	first := e.Before(template)
	_, n := e.Span(batch)
	sums := make([]*big.Int, len(l.all))
	for i := range sums {
		sums[i] = new(big.Int)
	}
	piece := max(pieceBytes/e.Dataset.Schema().MaxRowBytes(), 1)
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("verify: regenerating rows: %w", err)
		}
		m := min(n, piece)
		e.Dataset.Fill(block, first, int(m))
		e.Dataset.Derive(block, e.FirstKey+first)
		for i, one := range l.all {
			one.Add(sums[i], &block.Columns[one.Column])
		}
		first, n = first+m, n-m
	}
	return sums, nil
}

// check compares a bucket of so many batches that holds the right rows. It returns "" if all measures are right or not
// all of its batches were measured. A nil receiver measured none.
func (l *measures) check(b loader.Bucket, together int64) (detail string, err error) {
	if l == nil || len(l.all) == 0 {
		return "", nil
	}
	if len(b.Measures) != len(l.all) {
		return "", fmt.Errorf("the back-end has %d measures of the schema's %d", len(b.Measures), len(l.all))
	}
	want := make([]*big.Int, len(l.all))
	for i := range want {
		want[i] = new(big.Int)
	}
	for n := b.Number * together; n < (b.Number+1)*together && n <= l.last; n++ {
		sums := l.template[n%l.cycle]
		if n == l.last {
			sums = l.lastSums
		}
		if sums == nil {
			return "", nil
		}
		for i, sum := range sums {
			want[i].Add(want[i], sum)
		}
	}
	var wrong []string
	for i, sum := range want {
		if b.Measures[i].Cmp(sum) != 0 {
			wrong = append(wrong, l.differ(l.all[i], b.Measures[i], sum))
		}
	}
	return strings.Join(wrong, ", "), nil
}

func (l *measures) differ(m rows.Measure, found, want *big.Int) string {
	name := l.schema.Columns[m.Column].Name
	switch m.Of {
	case rows.Nulls:
		return fmt.Sprintf("column %s has %v NULLs instead of %v", name, found, want)
	case rows.Length:
		return fmt.Sprintf("column %s holds %v bytes instead of %v", name, found, want)
	default:
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(l.schema.Columns[m.Column].Scale)), nil)
		decimal := func(n *big.Int) string {
			return new(big.Rat).SetFrac(n, scale).FloatString(l.schema.Columns[m.Column].Scale)
		}
		return fmt.Sprintf("the values of column %s sum to %s instead of %s", name, decimal(found), decimal(want))
	}
}

// Spread returns k numbers below n, ascending: a random one from each of k nearly equal stretches, so that no part of
// the table is left out by chance. k ≥ n gives all.
func Spread(n, k int64, seed uint64) []int64 {
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
// run, which one statement fetches, since without an index each statement scans the table; or the back-end's own
// sample, which needs no scan, if it is at least half as large.
func (r *Result) compare(ctx context.Context, can loader.Features, e Expect) error {
	keys := Spread(e.Rows, int64(cmp.Or(e.VerifyRows, DefaultVerifyRows)), e.Seed)
	if len(keys) == 0 {
		return nil
	}
	for i := range keys {
		keys[i] += e.FirstKey
	}
	suspects := r.suspects()
	before := *r
	err := e.ask(ctx, "sample", func(ctx context.Context) error {
		if can.Sampler != nil {
			*r = before
			if err := r.sample(ctx, can.Sampler, e, len(keys), suspects); err != nil {
				return err
			}
			if r.SampledRows >= int64(len(keys)+1)/2 {
				return nil
			}
		}
		*r = before
		return r.fetch(ctx, can.Fetcher, e, without(keys, suspects))
	})
	if err != nil {
		return err
	}
	return r.nameWrongRows(ctx, can.Fetcher, e, suspects)
}

// nameWrongRows reads the rows of wrong batches back, as many at a time as a sample has. Their batches are wrong
// whatever becomes of this, so an error of the server ends it and no more.
func (r *Result) nameWrongRows(ctx context.Context, can loader.Fetcher, e Expect, suspects []int64) error {
	for some := range slices.Chunk(suspects, cmp.Or(e.VerifyRows, DefaultVerifyRows)) {
		before := *r
		err := e.ask(ctx, "sample", func(ctx context.Context) error {
			*r = before
			return r.fetch(ctx, can, e, some)
		})
		if err != nil {
			*r = before
			return ctx.Err()
		}
	}
	return nil
}

// without returns the keys that are not among others, which are ascending.
func without(keys, others []int64) []int64 {
	return slices.DeleteFunc(keys, func(key int64) bool {
		_, among := slices.BinarySearch(others, key)
		return among
	})
}

// maxSuspects bounds how many rows of wrong batches are read back.
const maxSuspects = 100_000

// suspects returns the first rows of wrong batches that are in the table, ascending.
func (r *Result) suspects() (keys []int64) {
	for _, b := range r.BadBatches {
		if b.Reason == string(Missing) {
			continue
		}
		for key := b.FirstKey; key <= b.LastKey && len(keys) < maxSuspects; key++ {
			keys = append(keys, key)
		}
	}
	return keys
}

// sample compares rows of the back-end's choice, but for some that are read back anyway. Whether any is missing or
// doubled is what the count says.
func (r *Result) sample(ctx context.Context, s loader.Sampler, e Expect, n int, but []int64) error {
	wanted := rows.NewBlock(e.Dataset.Schema())
	err := s.Sample(ctx, n, func(key int64, values []any) error {
		if key < e.FirstKey || key-e.FirstKey >= e.Rows { // another run's
			return nil
		}
		if _, again := slices.BinarySearch(but, key); again {
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
	if len(keys) == 0 {
		return nil
	}
	r.SampledRows += int64(len(keys))
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
		detail, offset, err := differValue(c, want.Columns[i].At(0), values[i])
		if err != nil {
			return nil, err
		}
		if detail != "" {
			return &BadRow{Reason: Differs, Column: c.Name, Offset: offset, Detail: detail}, nil
		}
	}
	return nil, nil
}

// differValue returns how a value differs from the one that was sent, "" if it does not. What a server keeps in a form
// of its own is compared in one form: JSON by what it says, texts of a fixed length without the blanks at their end. Of
// a type that only the server knows it is compared whether there is a value.
func differValue(c rows.Column, want, found any) (detail string, offset int, err error) {
	switch {
	case found == nil && want == nil:
		return "", 0, nil
	case found == nil:
		return "it is NULL", 0, nil
	case want == nil:
		return "it is not NULL", 0, nil
	case opaque(c):
		return "", 0, nil
	}

	switch found := found.(type) {
	case int64:
		w, is := want.(int64)
		if !is {
			return "", 0, fmt.Errorf("the back-end returned a number for column %s of type %s", c.Name, c.Type)
		}
		if found != w {
			detail = fmt.Sprintf("%s instead of %s", c.Text(found), c.Text(w))
		}
		return detail, 0, nil
	case []byte:
		w, is := want.([]byte)
		if !is {
			return "", 0, fmt.Errorf("the back-end returned bytes for column %s of type %s", c.Name, c.Type)
		}
		switch c.Type {
		case rows.Wide:
			if !bytes.Equal(w, found) {
				detail = fmt.Sprintf("%s instead of %s", c.TextOf(found), c.TextOf(w))
			}
			return detail, 0, nil
		case rows.Char:
			found = bytes.TrimRight(found, " ")
		case rows.JSON:
			w, found = canonicalJSON(w), canonicalJSON(found)
		case rows.Float32s:
			return differFloats(w, found)
		case rows.Arrays:
			if !bytes.Equal(w, found) {
				return fmt.Sprintf("%s instead of %s", c.AppendList(nil, found), c.AppendList(nil, w)), 0, nil
			}
		}
		detail, offset = differBytes(w, found)
		return detail, offset, nil
	default:
		return "", 0, fmt.Errorf("the back-end returned a %T for column %s", found, c.Name)
	}
}

// opaque reports whether only the server knows when values of a column's type are equal.
func opaque(c rows.Column) bool { return c.SQL != "" && c.Type != rows.JSON }

// differFloats returns the first number in which vectors differ, and its offset in them; "" if there is none.
func differFloats(want, found []byte) (detail string, offset int, err error) {
	const size = rows.FloatBytes
	if len(want) != len(found) {
		return fmt.Sprintf("%d numbers instead of %d", len(found)/size, len(want)/size), 0, nil
	}
	for at := 0; at < len(want); at += size {
		w, f := want[at:at+size], found[at:at+size]
		if !bytes.Equal(w, f) {
			return fmt.Sprintf("number %d is %s instead of %s", at/size+1, rows.AppendFloats(nil, f), rows.AppendFloats(nil, w)), at, nil
		}
	}
	return "", 0, nil
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
