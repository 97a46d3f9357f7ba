package dataset

import (
	"cmp"
	"hash/fnv"

	"github.com/terapush/terapush/pkg/rows"
)

// meanRows is how many rows of seed 1 the average length of a row is taken from.
const meanRows = 10_000

// specDataset is the dataset of a spec. Columns are filled one after the other, each in a loop of its own.
type specDataset struct {
	schema  rows.Schema
	drawn   []drawnColumn // in an order in which all others that one depends on come first
	derived []derivedColumn
	wants   []Want
	parents []ownParents
	sampled int64 // bytes of the files of samples
}

type drawnColumn struct {
	column    int
	generator generator
	from      dependent // instead of generator: on column of
	of        int
	start     uint64 // state of the column's stream at row 0
}

type derivedColumn struct {
	column int
	derived
}

// nameStart returns where the stream of a derived column starts, which follows from its name alone.
func nameStart(name string) uint64 { return columnStart(0, name) }

// columnStart returns where a column's stream starts. It depends on the column's name and not on its place, so that
// other columns can come and go.
func columnStart(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) // a hash never fails
	return mix(mix(seed) ^ h.Sum64())
}

func (p *specPlan) compile(seed uint64) *specDataset {
	d := p.dataset(seed)
	mean, varies := p.meanBytes(d, seed)
	if varies {
		d.schema.MeanRowBytes = max(1, mean)
	}
	return d
}

func (p *specPlan) dataset(seed uint64) *specDataset {
	d, files := &specDataset{schema: p.schema}, map[string]bool{}
	for _, i := range p.order {
		c := p.columns[i]
		if c.sampled > 0 && !files[c.stream] {
			files[c.stream] = true
			d.sampled += c.sampled
		}
		if c.derived != nil {
			d.derived = append(d.derived, derivedColumn{i, c.derived})
			continue
		}
		one := drawnColumn{column: i, of: c.of, start: columnStart(seed, cmp.Or(c.stream, c.column.Name))}
		if one.from = c.follows; one.from == nil {
			one.generator = c.drawn(one.start)
		}
		if c.parents != nil {
			d.parents = append(d.parents, ownParents{c.column.Name, c.parents(one.start), one.start})
		}
		d.drawn = append(d.drawn, one)
		if c.wants > 0 {
			d.wants = append(d.wants, Want{c.column.Name, c.wants})
		}
	}
	return d
}

// meanBytes returns the mean column data of the first rows of seed 1, and whether rows differ. d is the dataset of a
// seed.
func (p *specPlan) meanBytes(d *specDataset, seed uint64) (mean int64, varies bool) {
	sum := int64(0)
	for _, one := range d.drawn {
		c := p.columns[one.column].column
		g, known := one.generator.(measured)
		switch {
		case !c.Type.Variable() && !c.Nullable:
			sum += meanRows * c.Type.Size()
		case known:
			bytes := g.bytes(columnStart(1, c.Name), meanRows)
			varies = varies || bytes != meanRows*int64(c.MaxBytes)
			sum += bytes
		default:
			return p.sampledBytes(d, seed), true
		}
	}
	for _, one := range d.derived {
		sum += meanRows * p.columns[one.column].column.MaxSize()
	}
	return (sum + meanRows/2) / meanRows, varies
}

// sampleBytes bounds the rows of a dataset that are made to know their mean length, by the longest.
const sampleBytes = 16 << 20

// sampledBytes returns the mean column data of rows, which are made.
func (p *specPlan) sampledBytes(d *specDataset, seed uint64) int64 {
	if seed != 1 {
		d = p.dataset(1)
	}
	longest := max(d.schema.MaxRowBytes(), 1)
	n := max(min(meanRows, sampleBytes/longest), 1)
	piece := max(min(n, 1<<20/longest), 1)

	block, sum := rows.NewBlock(d.schema), int64(0)
	for first := int64(0); first < n; first += piece {
		d.Fill(block, first, int(min(piece, n-first)))
		d.Derive(block, first)
		sum += block.PayloadBytes()
	}
	return (sum + n/2) / n
}

// ofSpec returns the dataset of a spec; in place of a built-in one an empty one.
func ofSpec(d Dataset) *specDataset {
	if own, is := d.(*specDataset); is {
		return own
	}
	return new(specDataset)
}

// SampleMemory returns how many bytes of memory the files of a spec's samples take while they are read and prepared,
// which is twice what stays.
func SampleMemory(d Dataset) int64 { return 2 * ofSpec(d).sampled }

// Want is a drawn column that is meant to have many different values.
type Want struct {
	Column string
	Values int64
}

// Wants lists the columns of a spec whose readers would miss values: integers, keys of other tables, and what is
// distinct. A run of fewer distinct rows has fewer of them.
func Wants(d Dataset) []Want { return ofSpec(d).wants }

func (d *specDataset) Schema() rows.Schema { return d.schema }

func (d *specDataset) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	for i := range d.drawn {
		c := &d.drawn[i]
		if c.from != nil {
			c.from.fillFrom(&dst.Columns[c.column], &dst.Columns[c.of], c.start, first, n)
			continue
		}
		c.generator.fill(&dst.Columns[c.column], c.start, first, n)
	}
}

func (d *specDataset) Derive(dst *rows.Block, first int64) {
	for _, c := range d.derived {
		c.derive(&dst.Columns[c.column], first, dst.Rows)
	}
}
