package inspect

import (
	"math"
	"strings"

	"github.com/terapush/terapush/internal/dataset"
)

// bound leaves no table more rows than its derived columns have values for, and than those have that they go through:
// now, and at any scale.
func (s *schema) bound() {
	for _, all := range s.joint {
		for _, j := range all {
			j.fill()
		}
	}
	for _, w := range s.writers {
		w.most = w.room()
		w.Rows = min(w.Rows, w.most)
	}
	for changed := true; changed; {
		changed = false
		for _, w := range s.writers {
			most := w.through(func(p *parent) int64 { return p.most })
			rows := min(w.through(func(p *parent) int64 { return p.Rows }), most)
			if most < w.most || rows < w.Rows {
				w.most, w.Rows, changed = min(w.most, most), min(w.Rows, rows), true
			}
		}
	}
}

// room is how many rows the table's own derived columns have values for, as two characters have for a code.
func (w *writer) room() int64 {
	room := int64(math.MaxInt64)
	for _, c := range w.columns {
		if !c.derived || c.parent != nil {
			continue
		}
		spec, err := dataset.ParseSpec("file", []byte(unkeyed+entry{c, c.generator}.line()), nil)
		if err == nil {
			room = min(room, spec.Room())
		}
	}
	return room
}

// through is how many rows the parents of the table's derived columns have room for, of which rows tells how many they
// have.
func (w *writer) through(rows func(p *parent) int64) int64 {
	most := int64(math.MaxInt64)
	for _, c := range w.columns {
		if !c.derived || c.parent == nil || strings.Contains(c.generator, "cycle:") {
			continue
		}
		room := rows(c.parent)
		for _, fast := range w.columns {
			if fast != c && fast.derived && fast.parent != nil && strings.Contains(fast.generator, "cycle:") {
				times := max(rows(fast.parent), 1)
				room = min(room, math.MaxInt64/times) * times
			}
		}
		most = min(most, room)
	}
	return most
}
