package dataset

import (
	"math"

	"github.com/goccy/go-yaml/ast"

	"github.com/terapush/terapush/pkg/rows"
)

// SpecRef draws a key of another table: the value of the parent's derived column in any of its rows. It is computed,
// and no table is asked. Without UUID and Stride the parent's column is a sequence.
type SpecRef struct {
	Table  string `json:"table"`
	Column string `json:"column"`
	Rows   int64  `json:"rows"`          // of the parent; of the column's own table the first ones, which are the parents of all
	Own    bool   `json:"own,omitempty"` // Table is the one that the column is in
	// With is the column of a reference to the same table, in whose row of the parent the value is; "" if this column
	// draws the row. Both are NULL together.
	With   string `json:"with,omitempty"`
	Start  string `json:"start,omitempty"`
	Step   string `json:"step,omitempty"`
	Every  int64  `json:"every,omitempty"`
	Cycle  int64  `json:"cycle,omitempty"`
	Format string `json:"format,omitempty"`
	UUID   string `json:"uuid,omitempty"`   // v4 or v7, with Start and Step
	Stride int64  `json:"stride,omitempty"` // of a scatter
	// Skew: the parent of rank k is drawn in proportion to k^−s; nil: all parents equally often.
	Skew *SpecSkew `json:"zipf,omitempty"`
	// Unchecked says that the parent, of the same file, may be filled later, since the server is told not to look.
	Unchecked bool `json:"unchecked,omitempty"`

	short string // table.column of the same file, until ParseTables has found what it is
}

// SpecSkew is how often parents are drawn.
type SpecSkew struct {
	S       string `json:"s"`
	Scatter bool   `json:"scatter,omitempty"` // the ranks are anywhere, and not in the order of the parents' rows
}

func readRef(r *specReader, c *SpecColumn, e entry, where string) Generator {
	if _, mapping := e.value.(*ast.MappingNode); !mapping {
		return &SpecRef{short: r.scalar(e.value, where)}
	}
	f := r.fields(c, e, where, "of", "table", "column", "rows", "with", "start", "step", "every", "cycle", "format", "uuid", "stride",
		"unchecked", "columns", "values_from")
	if two, is := f.all["columns"]; is {
		f.add(two.line, "%s: write a reference of two columns as two, the second beside with: and the name of the first", where)
	}
	if later, is := f.all["values_from"]; is {
		f.add(later.line, "%s: values_from is not there: a reference is computed from the parent's sequence, uuid or scatter", where)
	}
	if of, is := f.all["of"]; is {
		if len(f.all) != 2 || f.all["with"].key+f.all["unchecked"].key == "" {
			f.add(of.line, "%s: of stands beside with or unchecked alone, as in {of: seats.seat, with: hall}; of one column write ref: seats.seat",
				where)
		}
		return &SpecRef{short: f.text("of"), With: f.text("with"), Unchecked: f.flag("unchecked")}
	}
	if early, is := f.all["unchecked"]; is {
		f.add(early.line, "%s: unchecked is for a table of the same file: write {of: table.column, unchecked: true}", where)
	}
	return &SpecRef{
		Table: f.text("table"), Column: f.text("column"), Rows: f.count("rows", 0), With: f.text("with"),
		Start: f.text("start"), Step: f.text("step"), Every: f.count("every", 0), Cycle: f.count("cycle", 0),
		Format: f.text("format"), UUID: f.text("uuid"), Stride: f.count("stride", 0),
	}
}

// readSkew reads zipf beside ref.
func readSkew(r *specReader, c *SpecColumn, e entry, where string) *SpecSkew {
	f := r.fields(c, e, where, "s", "scatter")
	return &SpecSkew{f.text("s"), f.flag("scatter")}
}

func (r *SpecRef) plan(p *columnPlanner) (plan columnPlan) {
	if r.short != "" && r.Table == "" {
		return p.refuse([]string{"ref"},
			"ref: %s is for a file with tables, or for the table itself, which is %s: write {table: …, column: …, rows: …}",
			quoted(r.short), quoted(p.Name))
	}
	if r.With != "" {
		return r.planWith(p)
	}
	plan = r.planOf(p, r.Skew)
	if plan.wants = (r.Rows-1)/max(r.Every, 1) + 1; r.Cycle > 0 {
		plan.wants = min(plan.wants, r.Cycle)
	}
	return plan
}

// planWith plans a column that takes its value from the row which another reference has drawn.
func (r *SpecRef) planWith(p *columnPlanner) (plan columnPlan) {
	of := p.other("ref", r.With)
	if of == nil {
		return plan
	}
	first := &p.Columns[p.columnIndex(r.With)]
	drawn, isRef := first.Generator.(*SpecRef)
	switch {
	case !isRef || drawn.Table != r.Table || drawn.Own != r.Own || drawn.With != "":
		return p.refuse([]string{"ref", "with"},
			"ref: column %s draws no row of table %s: name the column whose ref does", quoted(r.With), quoted(r.Table))
	case r.Rows != 0 && r.Rows != drawn.Rows:
		return p.refuse([]string{"ref", "rows"},
			"ref: %d rows, and column %s has %d: leave them out", r.Rows, quoted(r.With), drawn.Rows)
	case r.Skew != nil || p.c.Nulls != "" && !p.c.takesNull() || p.c.Distinct != 0 || p.c.Common != nil:
		return p.refuse([]string{"ref", "with"},
			"ref: the row and its NULL are those of column %s: leave zipf, nulls, distinct and common out here", quoted(r.With))
	case first.Distinct != 0 || first.Common != nil:
		return p.refuse([]string{"ref", "with"},
			"ref: column %s has distinct or common values, which draw no row of the parent", quoted(r.With))
	}

	r.Rows = drawn.Rows
	plan = r.planOf(p, drawn.Skew)
	plan.stream = r.With
	if draw := plan.drawn; draw != nil && of.column.Nullable {
		share := first.Nulls
		chance := p.chance(&share, "nulls")
		chance.first = r.firstNulls()
		plan.column.Nullable = true
		plan.drawn = func(start uint64) generator { return &nullable{draw(start), chance} }
	}
	return plan
}

// planOf plans the values of rows of the parent that are drawn by a skew.
func (r *SpecRef) planOf(p *columnPlanner, skew *SpecSkew) (plan columnPlan) {
	if r.Table == "" || r.Column == "" || r.Rows < 1 {
		return p.refuse([]string{"ref"},
			"ref needs table, column and rows, as in {table: customers, column: id, rows: 10000}")
	}
	isSequence := r.Format != "" || r.Every != 0 || r.Cycle != 0
	if r.UUID != "" && r.Stride > 0 || isSequence && (r.UUID != "" || r.Stride > 0) {
		return p.refuse([]string{"ref"},
			"ref: the parent's column is a sequence, perhaps with format, every and cycle, or a uuid, or a scatter: one of them")
	}
	parent := p.parent(r)
	if parent == nil {
		return plan
	}

	plan.column = parent.column
	plan.least, plan.most = parent.term.Minus, parent.derived.largest(r.Rows-1)
	q, isSequence := parent.derived.(*sequence)
	if isSequence && !r.Own && !p.t.Variable() && q.every == 1 && q.cycle == 0 { // the row is not asked for
		plan.drawn = p.ranks(uniformNumber{q.start, uint64(q.step), uint64(r.Rows)}, skew)
		return plan
	}
	rank := p.ranks(uniformNumber{0, 1, uint64(r.Rows)}, skew)
	if rank == nil {
		return plan
	}

	if r.Own {
		draw := rank
		parents := func(start uint64) *firstRows { return &firstRows{draw(start), r.Rows} }
		rank = func(start uint64) generator { return parents(start) }
		plan.parents = parents
	}
	of := parent.derived.(placed)
	plan.drawn = func(start uint64) generator { return &references{rank(start), of} }
	return plan
}

// parent plans the parent's column, nil after adding what is wrong.
func (p *columnPlanner) parent(r *SpecRef) *columnPlan {
	column := SpecColumn{Name: r.Column, Type: p.c.Type}
	switch {
	case r.UUID != "":
		column.Generator = &SpecUUID{Version: r.UUID, Start: r.Start, Step: r.Step}
	case r.Stride > 0:
		column.Generator = &SpecScatter{r.Start, r.Stride}
	default:
		column.Generator = &SpecSequence{Start: r.Start, Step: r.Step, Every: max(r.Every, 1), Cycle: r.Cycle, Format: r.Format}
	}
	table := &specPlanner{Spec: p.Spec, limit: math.MaxInt64}
	sub := &columnPlanner{specPlanner: table, c: &column, t: p.t, name: "column " + quoted(r.Column)}
	row := generatorOf(column.Generator)
	if row.types != nil && !p.need("ref", row.types...) {
		return nil
	}

	plan := column.Generator.plan(sub)
	for _, problem := range table.problems {
		p.wrong([]string{"ref"}, "ref: the parent's %s", problem.text)
	}
	if len(table.problems) > 0 {
		return nil
	}
	if table.limit < r.Rows-1 {
		p.wrong([]string{"ref", "rows"}, "ref: rows %d: the parent's column %s has values for %d rows",
			r.Rows, quoted(r.Column), table.limit+1)
		return nil
	}

	switch g := column.Generator.(type) {
	case *SpecSequence:
		r.Start, r.Step = g.Start, g.Step
	case *SpecUUID:
		r.Start, r.Step = g.Start, g.Step
	case *SpecScatter:
		r.Start = g.Start
	}
	return &plan
}

// ranks draws the values of a range, one for each row of a parent; nil after adding what is wrong.
func (p *columnPlanner) ranks(of uniformNumber, skew *SpecSkew) drawing {
	if skew == nil {
		return func(uint64) generator { return &of }
	}

	s := p.exponent(&skew.S)
	if s == 0 {
		return nil
	}
	if of.count > 1<<62 {
		p.wrong([]string{"ref", "rows"}, "ref: more than 2^62 rows")
		return nil
	}
	p.entries += int64(min(of.count, maxParts))
	return zipfNumbers(of, s, skew.Scatter)
}

// references are a derived column's values in rows that another generator draws.
type references struct {
	rows generator
	of   placed
}

// placed is a derived column whose values are made row by row, too.
type placed interface {
	// put writes the value of a row: value i of a vector, the next one of a text.
	put(v *rows.Vector, i int, row int64)
}

func (g *references) fill(v *rows.Vector, start uint64, first int64, n int) {
	if cap(v.Ints) < n { // of a text or a UUID, which has no use for them
		v.Ints = make([]int64, n)
	}
	v.Ints = v.Ints[:n]
	g.rows.fill(v, start, first, n)
	for i, row := range v.Ints {
		g.of.put(v, i, row)
	}
}
