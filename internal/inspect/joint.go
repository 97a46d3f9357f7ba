package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// joint is a reference of several columns to a table of the file. If that has every combination of their values, as a
// key of two has of which one starts over, each is drawn by itself; of any other parent they have the values of one
// row.
type joint struct {
	*loader.Reference
	of      *writer
	columns []*column
	apart   bool // each is drawn by itself
}

// isJoint reports whether a reference of several columns is to another table of the file.
func (s *schema) isJoint(from *loader.Description, r *loader.Reference) bool {
	in := func(t *loader.Description) bool { return t.Table == r.Table && s.left[t.Table] == nil }
	isOwn := r.Table == from.Table
	return len(r.Columns) > 1 && r.Schema == from.Schema && !isOwn && slices.ContainsFunc(s.tables, in)
}

// linkJoint links the columns of such a reference. A column that refers to a table alone, as a tenant's, keeps that.
func (s *schema) linkJoint(w *writer, r *loader.Reference) {
	j := &joint{Reference: r, of: s.writers[r.Table]}
	for i, name := range r.Columns {
		c := w.find(name)
		if c == nil || c.omitted != "" {
			continue
		}
		j.columns = append(j.columns, c)
		if c.parent == nil {
			c.parent = &parent{j.of, r.Of[i]}
		}
	}
	if len(j.columns) == len(r.Columns) {
		s.joint[w] = append(s.joint[w], j)
	}
}

// hasEvery reports whether the table has every combination of the columns' values.
func (w *writer) hasEvery(names []string) bool {
	return len(names) == 2 && len(w.key) == 2 && slices.Contains(w.key, names[0]) && slices.Contains(w.key, names[1])
}

// deriveReferred derives the columns that others refer to together, so that their values can be computed from a row's
// number.
func (s *schema) deriveReferred(w *writer) {
	for _, all := range s.joint {
		for _, j := range all {
			if j.of != w || w.hasEvery(j.Of) {
				continue
			}
			for _, name := range j.Of {
				if c := w.find(name); c != nil && c.omitted == "" {
					w.deriveOften(c)
				}
			}
		}
	}
}

// deriveOften is derive, but a column that refers to a parent starts over behind its last row, and one of days behind
// the last one that it may have.
func (w *writer) deriveOften(c *column) {
	if c.generator != "" {
		return
	}
	over := ""
	switch {
	case c.parent != nil && c.parent.startsOver() != "": // as the tenants of all users do
		over = c.parent.startsOver()
	case c.parent != nil:
		over = "sequence: {of: " + c.parent.short() + ", cycle: " + c.parent.rows() + "}"
	case c.most != nil && c.isDay():
		over = fmt.Sprintf("sequence: {start: %s, step: 1d, cycle: %d}", c.from(), c.days())
	}
	if over != "" && w.accepted(nil, entry{c, over}) {
		c.choose(over)
		return
	}
	w.derive(c) // behind the last row of a parent with UUIDs nothing starts over
}

// startsOver is the generator of a parent's column that itself starts over behind the last row of another table; "" of
// others.
func (p *parent) startsOver() string {
	of := p.find(p.column)
	if of == nil || !of.derived || of.parent == nil || !strings.Contains(of.generator, "cycle:") {
		return ""
	}
	return of.generator
}

// days is how many days the column may have.
func (c *column) days() int {
	first, _ := time.Parse(time.DateOnly, c.from())
	last, _ := time.Parse(time.DateOnly, c.to())
	return int(last.Sub(first).Hours()/24) + 1
}

// share makes the columns refer to the parent of all, whose own refer to what one of them may refer to alone. It
// reports false, and leaves the reference out, if one of them belongs to another such reference.
func (j *joint) share(w *writer) bool {
	if j.apart = j.of.hasEvery(j.Of); j.apart {
		return true
	}

	isAnothers := func(c *column) bool { return c.reference != nil && len(c.reference.Columns) > 1 }
	if slices.ContainsFunc(j.columns, isAnothers) {
		w.leaveOutOne(j.Reference)
		return false
	}
	for i, c := range j.columns {
		c.parent, c.reference = &parent{j.of, j.Of[i]}, j.Reference
	}
	return true
}

// fill gives the parent of columns that are drawn apart as many rows as one of its columns has values before it starts
// over: with fewer not every pair is there.
func (j *joint) fill() {
	if !j.apart {
		return
	}
	for _, c := range j.of.columns {
		j.of.Rows = max(j.of.Rows, turn(c.generator))
		if c.derived && c.parent != nil && strings.Contains(c.generator, "cycle:") {
			j.of.Rows = max(j.of.Rows, c.parent.Rows)
		}
	}
}

// drawTogether chooses the column that draws the parent's row: one that is derived, or else takes no NULL, or else the
// first.
func (j *joint) drawTogether() {
	if j.apart {
		return
	}

	first := j.columns[0]
	for _, better := range []func(c *column) bool{
		func(c *column) bool { return c.derived },
		func(c *column) bool { return !c.Nullable },
	} {
		if i := slices.IndexFunc(j.columns, better); i >= 0 {
			first = j.columns[i]
			break
		}
	}
	for _, c := range j.columns {
		if c != first && !c.derived {
			c.with = first
		}
	}
}

// together lists the generators that take a value from the row of the parent that another column has drawn, or follows.
func (c *column) together() []string {
	over := c.parent.startsOver()
	if over != "" && c.with.generator == "sequence: {"+c.with.begins()+"}" { // row by row with the parent
		return []string{over}
	}
	if c.with.derived {
		return []string{strings.Replace(c.with.generator, c.with.parent.short(), c.parent.short(), 1)}
	}
	return []string{"ref: {of: " + c.parent.short() + ", with: " + value(c.with.Name) + "}"}
}
