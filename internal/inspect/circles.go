package inspect

import (
	"slices"
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

func (s *schema) unchecked() bool {
	for _, w := range s.writers {
		if slices.ContainsFunc(w.columns, func(c *column) bool { return c.unchecked }) {
			return true
		}
	}
	return false
}
