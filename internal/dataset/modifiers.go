package dataset

import (
	"hash/fnv"
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"github.com/terapush/terapush/pkg/rows"
)

// streamOf returns where another stream of a column starts, by its name.
func streamOf(start uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) // a hash never fails
	return mix(start ^ h.Sum64())
}

// chance is how often something is so, as a fraction of 2^64; always is all of it.
type chance struct {
	below  uint64
	always bool
	first  int64 // rows before it are always so
}

// chance reads a share such as 3%, of more than 0%, and writes it in its one notation.
func (p *columnPlanner) chance(text *string, at string) (c chance) {
	share, is := parsePercent(*text)
	if !is || share <= 0 || share > hundredPercent {
		p.wrong([]string{at}, "%s: %s", at, noShare(*text))
		return c
	}
	*text = trimmed(formatDecimal(share, 9)) + "%"
	if share == hundredPercent {
		return chance{always: true}
	}
	c.below, _ = bits.Div64(uint64(share), 0, hundredPercent)
	return c
}

// noNulls is the share of a column without NULLs that a table takes nevertheless.
const noNulls = "0%"

// takesNull reports whether the column may be NULL, and is not.
func (c *SpecColumn) takesNull() bool {
	share, is := parsePercent(c.Nulls)
	return is && share == 0
}

// parsePercent reads a share as 12.5%, of which hundredPercent is the whole.
func parsePercent(text string) (share int64, is bool) {
	percent, is := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := parseDecimal(strings.TrimSpace(percent), 9, 12)
	return share, is && err == nil
}

// of reports whether it is so in a row.
func (c chance) of(start uint64, row int64) bool {
	return c.always || row < c.first || mix(at(start, row, 1)+gamma) < c.below
}

// nullable makes some values of a generator NULL.
type nullable struct {
	generator
	chance chance
}

func (g *nullable) fill(v *rows.Vector, start uint64, first int64, n int) {
	g.generator.fill(v, start, first, n)
	g.chance.clear(v, start, first, n)
}

// nullableDependent makes some values of a dependent NULL.
type nullableDependent struct {
	dependent
	chance chance
}

func (g *nullableDependent) fillFrom(v, of *rows.Vector, start uint64, first int64, n int) {
	g.dependent.fillFrom(v, of, start, first, n)
	g.chance.clear(v, start, first, n)
}

// clear makes values NULL, which are then 0 or empty.
func (c chance) clear(v *rows.Vector, start uint64, first int64, n int) {
	if len(v.Nulls) == 0 {
		v.SetNulls(n)
	}
	stream := streamOf(start, "nulls")
	for i := range n {
		if c.of(stream, first+int64(i)) {
			v.Nulls[i/64] |= 1 << (i % 64)
		}
	}

	switch {
	case v.Type.Variable():
		compact(v, n)
	case v.Type.InBytes():
		for i := range n {
			if v.IsNull(i) {
				clear(v.UUID(i))
			}
		}
	default:
		for i := range n {
			if v.IsNull(i) {
				v.Ints[i] = 0
			}
		}
	}
}

// compact removes the bytes of values that are NULL.
func compact(v *rows.Vector, n int) {
	from, to := uint32(0), uint32(0)
	for i := range n {
		end := v.Ends[i]
		if !v.IsNull(i) {
			to += uint32(copy(v.Data[to:], v.Data[from:end]))
		}
		from, v.Ends[i] = end, to
	}
	v.Data = v.Data[:to]
}

// distinctPool is how many values, and how many bytes of them, are made in advance.
const distinctPool, distinctBytes = 1 << 16, 8 << 20

// distinct restricts a generator to the values of its rows 0 … n−1.
func (p *columnPlanner) distinct(plan *columnPlan, n int64) {
	if n < 1 {
		p.wrong([]string{"distinct"}, "distinct: %d: 1 or more", n)
		return
	}
	draw, column := plan.drawn, plan.column
	if plan.follows != nil || plan.derived != nil || column.Type == rows.UUID {
		p.wrong([]string{"distinct"}, "distinct is for columns that are drawn by themselves")
		return
	}
	if column.Type == rows.Wide {
		p.wrong([]string{"distinct"}, "distinct is not for decimals of more than %d digits: write values, or a larger step", narrowDigits)
		return
	}

	plan.wants = n
	pooled := n <= distinctPool && n*(column.MaxSize()+longCopy) <= distinctBytes
	if pooled {
		const entryBytes = 32 // of the tables that entries count
		p.entries += n * max((column.MaxSize()+longCopy)/entryBytes, 1)
	}
	plan.drawn = func(start uint64) generator {
		inner := draw(start)
		if !pooled {
			return newFew(inner, uint64(n), column.Type)
		}
		v := rows.Vector{Type: column.Type, Ints: make([]int64, n)}
		inner.fill(&v, streamOf(start, "distinct"), 0, int(n))
		if !column.Type.Variable() {
			return &chosenNumber{list: v.Ints}
		}
		list := make([]string, n)
		for i := range list {
			list[i] = string(v.Value(i))
		}
		return &chosenText{newTexts(list...), nil, column.MaxBytes}
	}
}

// few draws the values of n rows of a generator, more than are made in advance.
type few struct {
	inner   generator
	n       uint64
	scratch sync.Pool // of *rows.Vector
}

func newFew(inner generator, n uint64, t rows.Type) *few {
	return &few{inner: inner, n: n, scratch: sync.Pool{New: func() any { return &rows.Vector{Type: t, Ints: make([]int64, 1)} }}}
}

func (g *few) fill(v *rows.Vector, start uint64, first int64, n int) {
	one := g.scratch.Get().(*rows.Vector)
	defer g.scratch.Put(one)

	stream, state := streamOf(start, "distinct"), at(start, first, 1)
	for i := range n {
		state += gamma
		k, _ := bits.Mul64(mix(state), g.n)
		one.Data, one.Ends = one.Data[:0], one.Ends[:0]
		g.inner.fill(one, stream, int64(k), 1)
		if !v.Type.Variable() {
			v.Ints[i] = one.Ints[0]
			continue
		}
		v.Data = append(v.Data, one.Data...)
		v.Ends = append(v.Ends, uint32(len(v.Data)))
	}
}

// dependent makes values that depend on those of another column, in the same row.
type dependent interface {
	fillFrom(v, of *rows.Vector, start uint64, first int64, n int)
}

// SpecSame is the value of another drawn column.
type SpecSame string

func (s *SpecSame) plan(p *columnPlanner) (plan columnPlan) {
	of := p.other("same", string(*s))
	if of == nil {
		return plan
	}
	if of.column.Type != p.t.Type || of.column.Scale != p.t.scale || p.t.IsList() && TypeName(of.column) != p.t.String() {
		return p.refuse([]string{"same"}, "same: column %s is %s and not %s", quoted(string(*s)), TypeName(of.column), p.t)
	}
	if p.t.Type == rows.Wide && of.column.Digits > p.t.digits {
		return p.refuse([]string{"same"},
			"same: column %s is %s, which is longer than %s", quoted(string(*s)), TypeName(of.column), p.t)
	}
	if smallest, largest := p.t.bounds(); !p.t.Variable() && !p.t.InBytes() && !of.isBeyond(p.t) && (of.least < smallest || of.most > largest) {
		return p.refuse([]string{"same"}, "same: column %s has values from %s to %s, which are not all %s",
			quoted(string(*s)), p.t.format(of.least), p.t.format(of.most), p.t)
	}
	plan = *of
	plan.drawn, plan.stream, plan.follows, plan.of = nil, "", copied{}, p.columnIndex(string(*s))
	plan.column.Declared, plan.column.TakesNull, plan.wants = 0, false, 0
	return plan
}

// other returns the plan of a drawn column that this one depends on, or adds why there is none.
func (p *columnPlanner) other(generator, name string) *columnPlan {
	i := p.columnIndex(name)
	switch {
	case p.inside:
		p.wrong([]string{generator}, "%s is for a column of its own, and not for a part of a document", generator)
		return nil
	case i < 0:
		p.wrong([]string{generator}, "%s: %s", generator, unknown("column", name, p.columnNames()))
		return nil
	case !p.planColumn(i):
		p.wrong([]string{generator}, "%s: columns %s and %s depend on each other", generator, quoted(p.c.Name), quoted(name))
		return nil
	}

	of := &p.columns[i]
	switch {
	case of.column.Name == "": // it has a problem of its own
		p.failed = true
		return nil
	case of.derived != nil:
		p.wrong([]string{generator}, "%s needs a drawn column, and %s is derived", generator, quoted(name))
		return nil
	}
	return of
}

// copied is another column's values.
type copied struct{}

func (copied) fillFrom(v, of *rows.Vector, _ uint64, _ int64, n int) {
	v.Nulls = append(v.Nulls[:0], of.Nulls...)
	switch {
	case v.Type.Variable():
		v.Data, v.Ends = append(v.Data[:0], of.Data...), append(v.Ends[:0], of.Ends...)
	case v.Type.InBytes():
		copy(v.Data, of.Data)
	default:
		copy(v.Ints[:n], of.Ints[:n])
	}
}

// SpecAfter is a drawn value that lies behind that of another drawn column, by any distance of a range.
type SpecAfter struct {
	Column string `json:"column"`
	By     string `json:"by"` // 1h..30d, 5..10 or one distance
}

func (a *SpecAfter) plan(p *columnPlanner) (plan columnPlan) {
	if a.Column == "" || a.By == "" {
		return p.refuse([]string{"after"}, "after needs column and by, as in {column: ordered_at, by: 1h..30d}")
	}
	of := p.other("after", a.Column)
	if of == nil {
		return plan
	}
	if of.column.Type != p.t.Type || of.column.Scale != p.t.scale {
		return p.refuse([]string{"after", "column"},
			"after: column %s is %s and not %s", quoted(a.Column), TypeName(of.column), p.t)
	}

	from, to, is := strings.Cut(a.By, "..")
	if !is {
		to = from
	}
	least, most := p.distance(&from), p.distance(&to)
	if p.hasProblem() {
		return plan
	}
	smallest, largest := p.t.bounds()
	switch {
	case of.isBeyond(p.t):
		return p.refuse([]string{"after", "column"},
			"after: column %s has values beyond 9223372036854775807, after which none is drawn", quoted(a.Column))
	case most < least:
		return p.refuse([]string{"after", "by"}, "after: by %s: the second is not less than the first", quoted(a.By))
	case of.most > largest-most:
		return p.refuse([]string{"after", "by"}, "after: by %s: %s after %s is beyond the largest %s",
			quoted(a.By), to, p.t.format(of.most), p.t.name)
	case of.least < smallest-least:
		return p.refuse([]string{"after", "by"}, "after: by %s: %s after %s is below the smallest %s",
			quoted(a.By), from, p.t.format(of.least), p.t.name)
	}

	a.By = from + ".." + to
	plan.of = p.columnIndex(a.Column)
	plan.column.Nullable = of.column.Nullable
	plan.least, plan.most = of.least+least, of.most+most
	unit := p.t.unit()
	count := uint64(most-least)/uint64(unit) + 1
	plan.follows = &later{least, unit, count}
	return plan
}

// distance reads a step, which may be 0.
func (p *columnPlanner) distance(text *string) int64 {
	*text = strings.TrimSpace(*text)
	if n, err := strconv.Atoi(strings.TrimRight(*text, "smhdu")); err == nil && n == 0 {
		*text = strings.TrimRight(*text, "mhu")
		*text = "0"
		if p.t.isTime() {
			*text = "0d"
		}
		return 0
	}
	return p.step(text, 0, "after", "by")
}

// later adds any distance of a range to another column's values.
type later struct {
	least, unit int64 // all distances are least and some units
	count       uint64
}

func (g *later) fillFrom(v, of *rows.Vector, start uint64, first int64, n int) {
	v.Nulls = append(v.Nulls[:0], of.Nulls...)
	state := at(start, first, 1)
	for i := range n {
		state += gamma
		more, _ := bits.Mul64(mix(state), g.count)
		v.Ints[i] = of.Ints[i] + g.least + int64(more)*g.unit
		if v.IsNull(i) {
			v.Ints[i] = 0
		}
	}
}
