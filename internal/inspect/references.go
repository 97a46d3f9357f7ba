package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/pkg/loader"
)

// readReferences finds the reference of each column. One of two columns comes first: its parent's rows have parents
// themselves where a column is in another one, too.
func (w *writer) readReferences(inFile func(r *loader.Reference) bool) {
	for i := range w.References {
		r := &w.References[i]
		known := len(r.Columns) == 1 || inFile != nil && inFile(r)
		if !known && !w.split(r) {
			w.leaveOutOne(r)
		}
	}
	for i := range w.References {
		r := &w.References[i]
		if len(r.Columns) > 1 {
			continue
		}
		if c := w.find(r.Columns[0]); c != nil && c.reference == nil {
			c.reference = r
		}
	}
}

// split makes a reference of each column of one whose parent has every combination of some ranges, and reports whether
// that can be done.
func (w *writer) split(r *loader.Reference) bool {
	for i, keys := range r.Grid {
		c := w.find(r.Columns[i])
		if c == nil || c.omitted != "" || c.reference != nil && *c.reference.Keys != keys {
			return false
		}
	}
	for i := range r.Grid {
		one := *r
		one.Columns, one.Of, one.Keys = r.Columns[i:i+1], r.Of[i:i+1], &r.Grid[i]
		w.find(r.Columns[i]).reference = &one
	}
	return r.Grid != nil
}

// leaveOutOne leaves a column of a reference of several out, so that its NULL keeps the reference.
func (w *writer) leaveOutOne(r *loader.Reference) {
	for _, name := range r.Columns {
		if c := w.find(name); c != nil && c.omitted == "" && c.Nullable && !w.inKey(name) {
			c.omitted = "one of a foreign key's columns, which are NULL together: " + referenceText(r)
			return
		}
	}
	w.unknown = append(w.unknown, referenceText(r))
}

// referToSelf makes every row its own parent, where a reference of several columns to the table itself takes no NULL.
func (w *writer) referToSelf() {
	for i := range w.References {
		r := &w.References[i]
		text := referenceText(r)
		if r.Schema != w.Schema || r.Table != w.Table || !slices.Contains(w.unknown, text) {
			continue
		}
		canFollow := true
		for i, name := range r.Columns {
			c, of := w.find(name), w.find(r.Of[i])
			canFollow = canFollow && c != nil && of != nil && of.derived && (c == of || c.omitted == "" && c.generator == "")
		}
		if !canFollow {
			continue
		}
		for i, name := range r.Columns {
			w.find(name).choose(w.find(r.Of[i]).generator)
		}
		w.unknown = slices.DeleteFunc(w.unknown, func(u string) bool { return u == text })
	}
}

// ownParent is the column of the same table that a column refers to, if it is derived.
func (w *writer) ownParent(c *column) *column {
	r := c.reference
	if r == nil || c.parent != nil || r.Schema != w.Schema || r.Table != w.Table {
		return nil
	}
	of := w.find(r.Of[0])
	if of == nil || of == c || !of.derived {
		return nil
	}
	return of
}

// someNulls makes some values of a column NULL that may be, unless its statistics say how many.
func (c *column) someNulls() string {
	if !c.Nullable || c.Shape != nil && c.Shape.Nulls >= leastShare {
		return ""
	}
	return ", nulls: 10%"
}

func referenceText(r *loader.Reference) string {
	return fmt.Sprintf("FOREIGN KEY (%s) REFERENCES %s.%s (%s)",
		strings.Join(r.Columns, ", "), r.Schema, r.Table, strings.Join(r.Of, ", "))
}

// gaps returns how many numbers between the smallest and the largest key are none.
func gaps(k *loader.ParentKeys) int64 { return k.Max - k.Min + 1 - k.Count }

// say says of a parent's keys what a range cannot.
func say(r *loader.Reference) string {
	switch k := r.Keys; {
	case k == nil:
		return ", whose keys were not read"
	case k.Count == 0:
		return ", which is empty: fill it first"
	case r.Grid != nil:
		return fmt.Sprintf(", %s keys, of which %s.%s has every combination", humanize.Comma(k.Count), r.Schema, r.Table)
	case gaps(k) > 0:
		return fmt.Sprintf(", %s keys from %d to %d: with gaps, in which no row may point",
			humanize.Comma(k.Count), k.Min, k.Max)
	default:
		return fmt.Sprintf(", %s keys", humanize.Comma(k.Count))
	}
}

// canBeDrawn reports whether a range has the parent's keys, and nothing else.
func canBeDrawn(r *loader.Reference) bool {
	return r.Keys != nil && r.Keys.Count > 0 && gaps(r.Keys) == 0
}
