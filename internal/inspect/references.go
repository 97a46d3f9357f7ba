package inspect

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/pkg/loader"
)

func (w *writer) readReferences() {
	for i := range w.References {
		r := &w.References[i]
		if len(r.Columns) == 1 {
			if c := w.find(r.Columns[0]); c != nil && c.reference == nil {
				c.reference = r
			}
			continue
		}
		w.leaveOutOne(r)
	}
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
