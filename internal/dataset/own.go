package dataset

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// A reference to a row's own table draws among the first rows of it, which are all in batch 0. How many these are is in
// the spec, since no value may depend on how rows are divided into batches. In the first rows themselves it is NULL,
// or, in a column without nulls, their own key.

// ownRows is how many first rows a reference draws from where the spec does not say it, or a tenth of all if that is
// less.
const ownRows = 1000

// ownColumns gives each reference to the table itself what its column says, and returns why one cannot be made.
func (s *Spec) ownColumns() (problems []problem) {
	for i := range s.Columns {
		c := &s.Columns[i]
		ref, is := c.Generator.(*SpecRef)
		if !is || !ref.isOwn(s.Name) {
			continue
		}
		if why := s.ownColumn(s.Name, c, ref); why != "" {
			problems = append(problems, problem{path("columns", c.Name, "ref"), "column " + quoted(c.Name) + ": ref: " + why})
		}
	}
	return problems
}

// isOwn reports whether a reference, as a file has it, is to the table that it is in.
func (r *SpecRef) isOwn(table string) bool {
	if r.short != "" {
		return r.Table == "" && strings.HasPrefix(r.short, table+".")
	}
	return r.Table == "" && r.Column != ""
}

// ownColumn makes a reference to a column of the same table, or returns why there is none.
func (s *Spec) ownColumn(table string, c *SpecColumn, ref *SpecRef) (why string) {
	name := cmp.Or(ref.Column, strings.TrimPrefix(ref.short, table+"."))
	of := s.column(name)
	if of == nil {
		return unknown("column", name, s.columnNames())
	}
	if given := ref.Start + ref.Step + ref.Format + ref.UUID; given != "" || ref.Every+ref.Cycle+ref.Stride != 0 {
		return "of its own table only column, rows and with are said: the others are those of column " + quoted(name)
	}
	if !ref.follow(of) {
		return "column " + quoted(name) + " of its own table is no sequence, uuid or scatter: these can be referred to"
	}
	if c.Type == "" {
		c.Type = of.Type
	}

	ref.Table, ref.Own = table, true
	if ref.Rows > 0 || ref.With != "" {
		return ""
	}
	ref.Rows = ownRows
	if s.Rows > 0 {
		ref.Rows = min(ownRows, max(s.Rows/10, 1))
	}
	return ""
}

// follow takes over what a parent's column says, and reports whether that can be referred to.
func (r *SpecRef) follow(of *SpecColumn) bool {
	r.Column = of.Name
	switch g := of.Generator.(type) {
	case *SpecSequence:
		r.Start, r.Step, r.Format = g.Start, g.Step, g.Format
		if g.Every > 1 || g.Cycle > 0 {
			r.Every, r.Cycle = g.Every, g.Cycle
		}
	case *SpecUUID:
		r.UUID, r.Start, r.Step = g.Version, g.Start, g.Step
		r.Column = cmp.Or(g.Of, of.Name)
	case *SpecScatter:
		r.Start, r.Stride = g.Start, g.Stride
	default:
		return false
	}
	return true
}

// firstNulls is how many first rows have NULL in a column that may be NULL.
func (r *SpecRef) firstNulls() int64 {
	if !r.Own {
		return 0
	}
	return r.Rows
}

// firstRows draws rows of a table among its first ones, which have themselves.
type firstRows struct {
	generator
	rows int64 // the first ones
}

func (g *firstRows) fill(v *rows.Vector, start uint64, first int64, n int) {
	g.generator.fill(v, start, first, n)
	for i := range min(int64(n), g.rows-first) {
		v.Ints[i] = first + i
	}
}

// ownParents draws the rows that a column's references to its own table point to.
type ownParents struct {
	column string
	of     *firstRows
	start  uint64
}

// OwnParents returns how many first rows of the table others refer to, and by which column; 0 if none do. All of them
// are to be in the table before the rows of another batch.
func OwnParents(d Dataset) (first int64, column string) {
	for _, p := range ofSpec(d).parents {
		if p.of.rows > first {
			first, column = p.of.rows, p.column
		}
	}
	return first, column
}

// WithParents returns some drawn rows with all those of the same table that they refer to, and these in turn, in
// ascending order. Each row comes after its parents.
func WithParents(d Dataset, drawn []int64) (all []int64) {
	parents := ofSpec(d).parents
	if len(parents) == 0 {
		return drawn
	}

	v := rows.Vector{Type: rows.Int64, Ints: make([]int64, 1)}
	found := make(map[int64]bool)
	left := slices.Clone(drawn)
	for len(left) > 0 {
		row := left[len(left)-1]
		left = left[:len(left)-1]
		if found[row] {
			continue
		}
		found[row] = true
		for _, p := range parents {
			p.of.fill(&v, p.start, row, 1)
			left = append(left, v.Ints[0])
		}
	}
	return slices.Sorted(maps.Keys(found))
}
