package dataset

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/terapush/terapush/pkg/rows"
)

// SpecArray is an array of any length, whose elements are drawn as a column's values are.
type SpecArray struct {
	SpecLength            // in elements
	Of         SpecColumn `json:"of"` // its type is that of the array's elements
}

// maxElements is how many elements an array has at most.
const maxElements = 1024

func readArray(r *specReader, c *SpecColumn, e entry, where string) Generator {
	f := r.fields(c, e, where, "length", "of")
	a := &SpecArray{SpecLength: f.length()}
	if of, is := f.all["of"]; is {
		a.Of = r.columnAt(of, where+": of", append(slices.Clip(c.place), "array", "of"))
	}
	return a
}

func (a *SpecArray) plan(p *columnPlanner) (plan columnPlan) {
	switch {
	case a.SpecLength == unknownLength || a.Of.Generator == nil:
		return p.refuse([]string{"array"}, "array needs length and of, as in {length: 0..8, of: {uniform: {min: 1, max: 9}}}")
	case a.Min < 0 || a.Max < a.Min || a.Max < 1 || a.Max > maxElements:
		return p.refuse([]string{"array", "length"},
			"array: length %d..%d: up to %d elements, and the second is not less than the first",
			a.Min, a.Max, maxElements)
	}
	if a.Of.Type != "" && a.Of.Type != p.t.of.String() {
		return p.refuse([]string{"array", "of"},
			"array: of: type %s: leave it out: the column's type says what the elements are", quoted(a.Of.Type))
	}
	if a.Of.SQL != "" {
		return p.refuse([]string{"array", "of"}, "array: of: sql is for columns")
	}

	a.Of.Type = p.t.of.String()
	if p.t.of.Variable() && p.t.of.size == 0 { // it is as long as the longest element
		a.Of.Type = p.t.of.name
	}
	of := &columnPlanner{
		specPlanner: p.specPlanner, c: &a.Of, inside: true,
		at: append(slices.Clip(p.at), "array", "of"), name: p.name + ": array: of",
	}
	inner := of.plan()
	if p.hasProblem() {
		return plan
	}
	if inner.drawn == nil {
		return p.refuse([]string{"array", "of"},
			"array: of: elements are drawn, and cannot be what follows from the row's number")
	}

	p.t.of.size = of.t.size
	plan.column.Of = &inner.column
	plan.column.Of.Name = ""
	plan.column.MaxBytes = a.Max * int(4+inner.column.MaxSize())
	if plan.column.MaxBytes > MaxPayloadBytes {
		return p.refuse([]string{"array"},
			"array: its values have up to %d bytes: %d at most", plan.column.MaxBytes, MaxPayloadBytes)
	}
	least, most, s := a.Min, a.Max, rows.Schema{Columns: []rows.Column{inner.column}}
	plan.drawn = func(start uint64) generator {
		stream := streamOf(start, "of")
		g := &array{of: inner.drawn(stream), start: stream, shortest: least, longest: most}
		g.scratch.New = func() any { return rows.NewBlock(s) }
		return g
	}
	return plan
}

// array draws arrays. A row takes a word for its length. Its elements are those of rows row × longest … of the column that they
// would be, so that any row is drawn alone.
type array struct {
	of                generator
	start             uint64 // of its stream
	shortest, longest int
	scratch           sync.Pool // of *rows.Block
}

func (g *array) fill(v *rows.Vector, start uint64, first int64, n int) {
	block := g.scratch.Get().(*rows.Block)
	defer g.scratch.Put(block)

	state := at(start, first, 1)
	for row := range int64(n) {
		state += gamma
		more, _ := bits.Mul64(mix(state), uint64(g.longest-g.shortest+1))
		length := g.shortest + int(more)
		block.Reset(length)
		if length > 0 {
			g.of.fill(&block.Columns[0], g.start, (first+row)*int64(g.longest), length)
		}
		for i := range length {
			v.Data = rows.AppendElement(v.Data, &block.Columns[0], i)
		}
		v.Ends = append(v.Ends, uint32(len(v.Data)))
	}
}
