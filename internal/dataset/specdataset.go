package dataset

import (
	"hash/fnv"

	"github.com/terapush/terapush/pkg/rows"
)

// meanRows is how many rows of seed 1 the average length of a row is taken from.
const meanRows = 10_000

// specDataset is the dataset of a spec. Columns are filled one after the other, each in a loop of its own.
type specDataset struct {
	schema  rows.Schema
	drawn   []drawnColumn
	derived []derivedColumn
}

type drawnColumn struct {
	column    int
	generator generator
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
	d := &specDataset{schema: p.schema}
	mean, varies := int64(0), false
	for i, c := range p.columns {
		if c.derived != nil {
			d.derived = append(d.derived, derivedColumn{i, c.derived})
			mean += meanRows * max(c.column.Type.Size(), int64(c.column.MaxBytes))
			continue
		}

		start := columnStart(seed, c.column.Name)
		one := drawnColumn{i, c.drawn(start), start}
		d.drawn = append(d.drawn, one)
		if !c.column.Type.Variable() {
			mean += meanRows * c.column.Type.Size()
			continue
		}
		sum := one.generator.bytes(columnStart(1, c.column.Name), meanRows)
		varies = varies || sum != meanRows*int64(c.column.MaxBytes)
		mean += sum
	}
	if varies {
		d.schema.MeanRowBytes = max(1, (mean+meanRows/2)/meanRows)
	}
	return d
}

func (d *specDataset) Schema() rows.Schema { return d.schema }

func (d *specDataset) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	for _, c := range d.drawn {
		c.generator.fill(&dst.Columns[c.column], c.start, first, n)
	}
}

func (d *specDataset) Derive(dst *rows.Block, first int64) {
	for _, c := range d.derived {
		c.derive(&dst.Columns[c.column], first, dst.Rows)
	}
}
