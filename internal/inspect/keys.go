package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func (w *writer) inKey(name string) bool {
	return slices.ContainsFunc(w.Keys, func(k loader.Key) bool { return slices.Contains(k.Columns, name) })
}

// chooseKey finds the columns by which a row is found again: those of the primary key, or else of a unique one, or else
// any that can number the rows.
func (w *writer) chooseKey() {
	for _, k := range w.Keys {
		columns := w.present(k)
		if columns == nil {
			continue
		}
		isJoint := len(columns) == 2 && columns[0].reference != nil && columns[0].reference == columns[1].reference
		if len(columns) == 2 && !isJoint && w.pair(columns) || w.numbered(columns) {
			return
		}
	}

	if w.numbered(w.columns) {
		c := w.find(w.key[0])
		c.notes = append(c.notes, "no key of the table does: this column numbers the rows, so that the proof finds them")
	}
}

// present returns the columns of a key that says alone what is unique; nil if one of them is not in the spec.
func (w *writer) present(k loader.Key) (all []*column) {
	if k.Only != "" {
		return nil
	}
	for _, name := range k.Columns {
		c := w.find(name)
		if c == nil || c.omitted != "" {
			return nil
		}
		all = append(all, c)
	}
	return all
}

// numbered makes one of some columns the key: an integer, or else a timestamp, or else a text; the first that can do
// it.
func (w *writer) numbered(columns []*column) bool {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c *column) bool { return c.omitted != "" })
	slices.SortStableFunc(columns, func(a, b *column) int { return cmp.Compare(a.rank(), b.rank()) })
	for _, c := range columns {
		for _, generator := range c.sequences(true) {
			if w.accepted([]string{c.Name}, entry{c, generator}) {
				w.key = []string{c.Name}
				c.choose(generator)
				return true
			}
		}
	}
	return false
}

// rank is how little a column is made for a key. One that refers to another table is bounded by that, and a narrow one
// has few values.
func (c *column) rank() int {
	rank := slices.Index([]rows.Type{rows.Int64, rows.Uint64, rows.Int32, rows.Uint32, rows.UUID, rows.Timestamp, rows.TimestampTZ, rows.Int16, rows.Uint16, rows.Text, rows.Char}, c.Values.Type)
	switch {
	case rank < 0 || c.reference != nil:
		return math.MaxInt
	case c.isNarrow():
		return math.MaxInt - 1
	}
	return rank
}

// pairCycle is how many rows share the first number of a key of two, where nothing else says it.
const pairCycle = 100

// pair makes a key of two integers: the one that starts over is that of a reference, or the second. One that refers to
// a table of the file starts over behind the last row of that.
func (w *writer) pair(columns []*column) bool {
	slow, fast := columns[0], columns[1]
	if slow.reference != nil && fast.reference == nil {
		slow, fast = fast, slow
	}
	if slow.parent != nil && fast.parent == nil {
		slow, fast = fast, slow
	}
	if slow.in != nil || fast.in != nil || !slow.isInteger() || !fast.isInteger() {
		return false
	}

	first, cycle, last := fast.begins(), "", ""
	if slow.parent == nil {
		last = slow.last()
	}
	if fast.parent != nil {
		cycle = fast.parent.rows()
	} else {
		start, count := fast.first(), int64(pairCycle)
		most, bounded := fast.end()
		if bounded {
			count = min(count, most-start+1)
		}
		if r := fast.reference; r != nil {
			if !canBeDrawn(r) {
				return false
			}
			start, count = r.Keys.Min, r.Keys.Count
		}
		if slow.reference != nil || count < 1 || bounded && start+count-1 > most {
			return false
		}
		first, cycle = fmt.Sprintf("start: %d", start), fmt.Sprint(count)
	}

	every := fmt.Sprintf("sequence: {%s, every: %s%s}", slow.begins(), cycle, last)
	over := fmt.Sprintf("sequence: {%s, cycle: %s}", first, cycle)
	key := []string{slow.Name, fast.Name}
	if !w.accepted(key, entry{slow, every}, entry{fast, over}) {
		return false
	}
	w.key = key
	slow.choose(every)
	fast.choose(over)
	return true
}

// begins is where a sequence of a column begins: at a number, or at the first row of its parent.
func (c *column) begins() string {
	if c.parent != nil {
		return "of: " + c.parent.short()
	}
	return fmt.Sprintf("start: %d", c.first())
}

// choose settles how a derived column is made.
func (c *column) choose(generator string) { c.generator, c.derived = generator, true }

// deriveUniques derives a column of each unique key that none decides yet, and columns that the server numbers. Keys of
// a part of their columns come first: what keeps them keeps those of the whole.
func (w *writer) deriveUniques() {
	for _, k := range w.Keys {
		if k.Only != "" && !w.derivePart(k) && !w.avoid(k) {
			w.unknown = append(w.unknown, fmt.Sprintf("UNIQUE %s, of %s", k.Name, k.Only))
		}
	}
	for _, k := range w.Keys {
		if k.Only != "" {
			continue
		}
		columns := w.present(k)
		switch {
		case columns == nil: // a NULL is in no key, but what the server computes is
			w.deriveComputed(k)
		case !w.hasKey(k.Columns) && !w.decided(k.Columns) && !w.deriveOne(columns):
			w.refuseUnique(k, columns)
		case k.Primary:
			w.primary = k.Columns
		default:
			w.unique = append(w.unique, k.Columns)
		}
	}
	for _, c := range w.columns {
		serial := strings.HasPrefix(c.Default, "nextval(")
		if (c.Numbered != "" || serial) && c.omitted == "" && c.generator == "" {
			w.derive(c)
		}
	}
}

// derivePart derives a column of a key of which the columns are not all, and reports whether rows keep the key.
func (w *writer) derivePart(k loader.Key) bool {
	for _, name := range k.Columns {
		c := w.find(name)
		if c == nil {
			continue
		}
		isKey := len(w.key) == 1 && w.key[0] == name
		if c.omitted != "" && c.Default == "" || k.Prefix == 0 && (isKey || w.decided([]string{name})) {
			return true // NULL, or never the same twice
		}
		if c.omitted != "" || c.reference != nil {
			continue
		}

		longest := c.maxLen
		if k.Prefix > 0 && (longest == 0 || k.Prefix < longest) {
			c.maxLen = k.Prefix
		}
		if w.derive(c) {
			return true
		}
		c.maxLen = longest
	}
	return false
}

// deriveComputed derives a column of those of which the server computes one of a key.
func (w *writer) deriveComputed(k loader.Key) {
	var of []*column
	for _, name := range k.Columns {
		c := w.find(name)
		if c == nil || c.Generated == "" {
			continue
		}
		tokens, _ := tokenize(c.Generated, w.Escapes)
		for _, t := range tokens {
			if from := w.find(t.text); t.isColumn() && from != nil && from.omitted == "" {
				of = append(of, from)
			}
		}
	}
	isDerived := slices.ContainsFunc(of, func(c *column) bool { return c.derived })
	if len(of) > 0 && !isDerived && !w.deriveOne(of) {
		w.unknown = append(w.unknown, "UNIQUE "+k.Name+", of what the server computes")
	}
}

// avoid keeps all rows out of an index that has those which meet a condition, as the only default, and reports whether
// that is understood.
func (w *writer) avoid(k loader.Key) bool {
	where, is := strings.CutPrefix(k.Only, "where ")
	if !is {
		return false
	}

	found, all := understand("NOT ("+where+")", w.Escapes)
	for name := range found {
		if c := w.find(name); c == nil || c.generator != "" {
			return false
		}
	}
	return all && w.limit(found)
}

// deriveOne derives one of some columns, if a generator can: one that refers to no parent, whose keys bound it, if
// there is one.
func (w *writer) deriveOne(columns []*column) bool {
	free := func(c *column) bool { return c.reference == nil && w.derive(c) }
	return slices.ContainsFunc(columns, free) || slices.ContainsFunc(columns, w.derive)
}

// hasKey reports whether the key is among the columns.
func (w *writer) hasKey(names []string) bool {
	return len(w.key) > 0 && !slices.ContainsFunc(w.key, func(k string) bool { return !slices.Contains(names, k) })
}

// decided reports whether one of the columns is derived and never the same twice.
func (w *writer) decided(names []string) bool {
	return slices.ContainsFunc(w.columns, func(c *column) bool {
		return c.derived && slices.Contains(names, c.Name) && !slices.Contains(w.key, c.Name)
	})
}

// derive makes a column one that is never the same twice, if a generator can.
func (w *writer) derive(c *column) bool {
	isOwn := c.parent != nil && c.parent.writer == w
	if c.generator != "" || isOwn {
		return false
	}
	for _, generator := range c.sequences(false) {
		if w.accepted(nil, entry{c, generator}) {
			c.choose(generator)
			return true
		}
	}
	return false
}

// refuseUnique leaves a column of a unique key out that no generator can make different in every row.
func (w *writer) refuseUnique(k loader.Key, columns []*column) {
	what := "UNIQUE " + k.Name
	if k.Primary {
		what = "the primary key"
	}
	why := "no generator makes it different in every row, as " + what + " wants"
	for _, c := range columns {
		if c.Nullable && c.generator == "" {
			w.leaveOut(c, why)
			return
		}
	}
	for _, c := range columns {
		if c.generator != "" {
			continue
		}
		isFew := c.isNarrow() || c.in != nil || c.Values.Type == rows.Enum || c.Values.Type == rows.Bool
		if isFew && !c.Optional() {
			w.problems = append(w.problems, fmt.Errorf("column %q: %s has too few values to be different in every row, "+
				"as %s wants: fill the table by hand", c.Name, c.Type, what))
			return
		}
		w.leaveOut(c, why)
		return
	}
}
