package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// breakCircles lets the table not wait for those that wait for it, where none on the way may be NULL: only a server
// that checks no foreign keys takes such rows. Keys go through their parents' rows, and wait.
func (w *writer) breakCircles() {
	for _, c := range w.columns {
		isOwn := c.parent != nil && c.parent.writer == w
		if isOwn || !c.waits() || w.inKey(c.Name) || len(c.reference.Columns) > 1 || !c.parent.waitsFor(w, map[*writer]bool{}) {
			continue
		}
		c.unchecked = true
		c.notes = append(c.notes, "table "+c.reference.Table+" is filled later")
	}
}

// waits reports whether the column makes its table wait for another one.
func (c *column) waits() bool {
	return c.parent != nil && c.reference != nil && c.omitted == "" && !c.Nullable && !c.unchecked
}

func (w *writer) waitsFor(other *writer, seen map[*writer]bool) bool {
	if w == other || seen[w] {
		return w == other
	}
	seen[w] = true
	return slices.ContainsFunc(w.columns, func(c *column) bool { return c.waits() && c.parent.waitsFor(other, seen) })
}

// breakJoint leaves a column out of a reference of several, so that its table does not wait for one that waits for it.
// It reports false where no other column of it takes no NULL, or there is no such circle.
func (s *schema) breakJoint(w *writer, r *loader.Reference) bool {
	var free *column
	bound := false
	for _, name := range r.Columns {
		c := w.find(name)
		if c == nil || c.omitted != "" {
			return false
		}
		if c.Nullable && !w.inKey(name) {
			free = c
		} else {
			bound = true
		}
	}
	if free == nil || !bound || !s.needs(r.Table, w, map[string]bool{}) {
		return false
	}
	free.omitted = "table " + r.Table + " is filled later: NULL"
	return true
}

// needs reports whether a table has a reference that takes no NULL to another one, or by others.
func (s *schema) needs(table string, other *writer, seen map[string]bool) bool {
	w := s.writers[table]
	if w == nil || seen[table] {
		return false
	}
	seen[table] = true
	takesNull := func(name string) bool { c := w.find(name); return c != nil && c.Nullable }
	return slices.ContainsFunc(w.References, func(r loader.Reference) bool {
		isFree := slices.ContainsFunc(r.Columns, takesNull)
		return r.Schema == w.Schema && !isFree && (r.Table == other.Table || s.needs(r.Table, other, seen))
	})
}

// circleOf returns those of some tables that need themselves, with that as their problem.
func (s *schema) circleOf(some map[string]*writer) map[string]*writer {
	circle := map[string]*writer{}
	for name, w := range some {
		if s.needs(name, w, map[string]bool{}) {
			circle[name] = w
		}
	}
	names := strings.Join(slices.Sorted(maps.Keys(circle)), ", ")
	for _, w := range circle {
		w.problems = []error{fmt.Errorf("%s refer to each other by columns that take no NULL: drop one of the foreign keys "+
			"until they are full, or fill them by hand", names)}
	}
	return circle
}

func (s *schema) unchecked() bool {
	for _, w := range s.writers {
		if slices.ContainsFunc(w.columns, func(c *column) bool { return c.unchecked }) {
			return true
		}
	}
	return false
}
