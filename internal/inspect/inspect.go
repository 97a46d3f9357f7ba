// Package inspect writes the spec of a dataset whose rows fit a table that exists: in the order of its columns, with its keys
// derived, its references and CHECKs as ranges and lists, and comments for what a spec cannot say.
package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Write returns the file of a dataset for the table, with server as what it was read from. The error names every column that needs a value which no generator makes.
func Write(d *loader.Description, server string) ([]byte, error) {
	w := newWriter(d)
	w.chooseKey()
	w.deriveUniques()
	for _, c := range w.columns {
		w.draw(c)
	}
	if len(w.key) == 0 && len(w.problems) == 0 {
		w.problems = append(w.problems, errors.New("it has no column by which a row is found again: "+
			"an integer, a text or a timestamp that no foreign key and no list of values bounds"))
	}
	if len(w.problems) > 0 {
		return nil, fmt.Errorf("no dataset can be made for table %s: %w", tableName(d), errors.Join(w.problems...))
	}

	text := w.file(server, d.Rows)
	_, err := dataset.ParseSpec(w.name+".yaml", []byte(text), nil)
	if err != nil && d.Rows > 0 { // more than its sequences have values for
		text = w.file(server, 0)
		_, err = dataset.ParseSpec(w.name+".yaml", []byte(text), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("no dataset can be made for table %s: %w", tableName(d), err)
	}
	return []byte(text), nil
}

// tableName is the table for people.
func tableName(d *loader.Description) string { return d.Schema + "." + d.Table }

// writer decides column by column what a spec says.
type writer struct {
	*loader.Description
	name     string // of the dataset
	columns  []*column
	key      []string
	unique   [][]string
	unknown  []string // constraints that are not understood
	problems []error
}

// column is a column of the table, and what the spec says of it.
type column struct {
	*loader.Column
	limits
	reference *loader.Reference // of this column alone
	kind      string            // the type in a spec
	generator string            // as a spec writes it; "" until it is chosen
	derived   bool
	notes     []string
	omitted   string // why it is left out; "" if it is not

	// Of a type that only the server knows: its name, and values that the server takes for it.
	sql      string
	examples []string
}

func newWriter(d *loader.Description) *writer {
	w := &writer{Description: d, name: specName(d.Table)}
	for i := range d.Columns {
		table := d.Columns[i]
		c := &column{Column: &table}
		if c.isNarrow() && c.Values.Type == rows.Int32 && (w.inKey(c.Name) || c.Numbered != "") {
			c.Values = &rows.Column{Name: c.Name, Type: rows.Int16} // whose sequences end before the column does
		}
		c.kind = kindOf(c.Values)
		switch {
		case c.Generated != "":
			c.omitted = "generated as " + c.Generated
		case dataset.CheckColumnName(c.Name) != nil:
			w.leaveOut(c, dataset.CheckColumnName(c.Name).Error())
		case c.Values == nil || c.kind == "":
			if why := "there is no type of ours for " + c.Type + " yet"; !w.imitate(c, why) {
				w.leaveOut(c, why)
			}
		}
		w.columns = append(w.columns, c)
	}
	w.readReferences()
	w.readChecks()
	return w
}

// leaveOut leaves a column out for a reason, or adds that it cannot be.
func (w *writer) leaveOut(c *column, why string) {
	c.omitted = why
	if !c.Optional() {
		w.problems = append(w.problems, fmt.Errorf("column %q: %s, it takes no NULL and has no default: give it one", c.Name, why))
	}
}

// specName makes the name of a dataset of a table's.
func specName(table string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, table)
	return name[:min(len(name), 63)]
}

// find returns a column by name: as it is, or, for servers that do not keep the case in conditions, in any case.
func (w *writer) find(name string) *column {
	for _, same := range []func(string) bool{
		func(n string) bool { return n == name },
		func(n string) bool { return strings.EqualFold(n, name) },
	} {
		if i := slices.IndexFunc(w.columns, func(c *column) bool { return same(c.Name) }); i >= 0 {
			return w.columns[i]
		}
	}
	return nil
}

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

func (w *writer) inKey(name string) bool {
	return slices.ContainsFunc(w.Keys, func(k loader.Key) bool { return slices.Contains(k.Columns, name) })
}

func referenceText(r *loader.Reference) string {
	return fmt.Sprintf("FOREIGN KEY (%s) REFERENCES %s.%s (%s)",
		strings.Join(r.Columns, ", "), r.Schema, r.Table, strings.Join(r.Of, ", "))
}

func (w *writer) readChecks() {
	for _, condition := range w.Checks {
		found, all := understand(condition, w.Escapes)
		for name, l := range found {
			c := w.find(name)
			if c == nil {
				all = false
				continue
			}
			c.limits = merge(map[string]limits{"": c.limits}, map[string]limits{"": l})[""]
		}
		if !all {
			w.unknown = append(w.unknown, condition)
		}
	}
}

// chooseKey finds the columns by which a row is found again: those of the primary key, or else of a unique one, or else any
// that can number the rows.
func (w *writer) chooseKey() {
	for _, k := range w.Keys {
		columns := w.present(k)
		if columns == nil {
			continue
		}
		if len(columns) == 2 && w.pair(columns) || w.numbered(columns) {
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

// numbered makes one of some columns the key: an integer, or else a timestamp, or else a text; the first that can do it.
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

// rank is how little a column is made for a key. One that refers to another table is bounded by that.
func (c *column) rank() int {
	rank := slices.Index([]rows.Type{rows.Int64, rows.Int32, rows.UUID, rows.Timestamp, rows.TimestampTZ, rows.Int16, rows.Text, rows.Char}, c.Values.Type)
	if rank < 0 || c.reference != nil {
		return math.MaxInt
	}
	return rank
}

// pairCycle is how many rows share the first number of a key of two, where nothing else says it.
const pairCycle = 100

// pair makes a key of two integers: the one that starts over is that of a reference, or the second.
func (w *writer) pair(columns []*column) bool {
	slow, fast := columns[0], columns[1]
	if slow.reference != nil && fast.reference == nil {
		slow, fast = fast, slow
	}
	if slow.reference != nil || slow.in != nil || fast.in != nil || !slow.isInteger() || !fast.isInteger() || slow.isNarrow() {
		return false
	}

	start, cycle := fast.first(), int64(pairCycle)
	if fast.reference != nil {
		keys := fast.reference.Keys
		if keys == nil || keys.Count == 0 || gaps(keys) > 0 {
			return false
		}
		start, cycle = keys.Min, keys.Count
	}
	if fast.isNarrow() && start+cycle-1 > fast.Values.Most {
		return false
	}
	every := fmt.Sprintf("sequence: {start: %d, every: %d}", slow.first(), cycle)
	over := fmt.Sprintf("sequence: {start: %d, cycle: %d}", start, cycle)
	key := []string{slow.Name, fast.Name}
	if !w.accepted(key, entry{slow, every}, entry{fast, over}) {
		return false
	}
	w.key = key
	slow.choose(every)
	fast.choose(over)
	return true
}

// choose settles how a derived column is made.
func (c *column) choose(generator string) { c.generator, c.derived = generator, true }

// deriveUniques derives a column of each unique key that none decides yet, and columns that the server numbers.
func (w *writer) deriveUniques() {
	for _, k := range w.Keys {
		if k.Only != "" {
			w.unknown = append(w.unknown, fmt.Sprintf("UNIQUE %s, of %s", k.Name, k.Only))
			continue
		}
		columns := w.present(k)
		switch {
		case columns == nil || w.hasKey(k.Columns): // a NULL is in no key, and what has the key is unique
		case w.decided(k.Columns) || w.deriveOne(columns):
			w.unique = append(w.unique, k.Columns)
		default:
			w.refuseUnique(k, columns)
		}
	}
	for _, c := range w.columns {
		if c.Numbered != "" && c.omitted == "" && c.generator == "" {
			w.derive(c)
		}
	}
}

// deriveOne derives one of some columns, if a generator can: one that refers to no parent, whose keys bound it, if there is one.
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
	if c.generator != "" {
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
	why := "no generator makes it different in every row, as UNIQUE " + k.Name + " wants"
	for _, c := range columns {
		if c.Nullable && c.generator == "" {
			w.leaveOut(c, why)
			return
		}
	}
	for _, c := range columns {
		if c.generator == "" {
			w.leaveOut(c, why)
			return
		}
	}
}

// draw chooses how a column is drawn that is not derived.
func (w *writer) draw(c *column) {
	if c.omitted != "" {
		return
	}
	if c.reference != nil {
		c.notes = append(c.notes, "REFERENCES "+c.reference.Schema+"."+c.reference.Table+" ("+c.reference.Of[0]+")"+say(c.reference))
	}
	if c.generator != "" {
		return
	}
	if c.reference != nil && !canBeDrawn(c.reference) && c.Nullable {
		c.omitted = strings.Join(c.notes, ", ") + ": NULL"
		return
	}

	why := "there is no generator for " + c.Type + " yet"
	for _, generator := range c.draws() {
		err := w.try(nil, entry{c, generator})
		if err == nil {
			c.generator = generator
			return
		}
		why = generator + " is no generator for it: " + err.Error()
	}
	w.leaveOut(c, why)
}

// entry is a column with a generator that may do.
type entry struct {
	*column
	generator string
}

func (e entry) line() string {
	kind := e.kind
	if e.sql != "" {
		kind += ", sql: " + quoted(e.sql)
	}
	return fmt.Sprintf("  %s: {type: %s, %s}", name(e.Name), kind, e.generator)
}

// accepted reports whether a spec may have the columns, with the key.
func (w *writer) accepted(key []string, all ...entry) bool { return w.try(key, all...) == nil }

// try returns why a spec may not have the columns, with the key; no key is any.
func (w *writer) try(key []string, all ...entry) error {
	text := "version: 1\nname: t\n"
	if key == nil {
		text += "key: [terapush_row]\ncolumns:\n  terapush_row: {type: bigint, sequence: {start: 1}}\n"
	} else {
		text += "key: " + names(key) + "\ncolumns:\n"
	}
	for _, e := range all {
		text += e.line() + "\n"
	}
	_, err := dataset.ParseSpec("file", []byte(text), nil)
	return err
}

// file writes the spec. rows is its number of rows, unless it is 0.
func (w *writer) file(server string, rows int64) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say := func(text string) { line("# %s", comment(text)) }

	say(tableName(w.Description) + " of " + server + ", as terapush inspect has read it. No value of its rows is in this file.")
	for _, hidden := range w.Hidden {
		say("The server did not show this user its " + hidden + ".")
	}
	if len(w.Costs) > 0 {
		say("Every row pays for " + strings.Join(w.Costs, ", ") + ".")
	}
	if w.Partitions != "" {
		say("Partitioned by " + w.Partitions + ": a row without a partition stops the run.")
	}
	for _, text := range w.unknown {
		say("Not understood: " + text + ". A row that breaks it stops the run before it begins.")
	}

	line("version: 1")
	line("name: %s", name(w.name))
	if rows > 0 {
		line("rows: %d", rows)
	}
	line("key: %s", names(w.key))
	line("columns:")
	for _, c := range w.columns {
		if c.omitted != "" {
			line("  # %s", comment(fmt.Sprintf("%s %s is left out: %s", quoted(c.Name), c.Type, c.omitted)))
			continue
		}
		text := entry{c, c.generator}.line()
		if notes := c.comment(); notes != "" {
			text += "  # " + comment(notes)
		}
		line("%s", text)
	}
	if len(w.unique) > 0 {
		line("unique:")
		for _, set := range w.unique {
			line("  - %s", names(set))
		}
	}
	return out.String()
}

// comment is what a spec cannot say of a column that is in it.
func (c *column) comment() string {
	var all []string
	if c.Numbered != "" {
		all = append(all, string(c.Numbered))
	}
	if c.Default != "" && c.Default != "NULL" {
		all = append(all, "DEFAULT "+c.Default)
	}
	if c.OnUpdate != "" {
		all = append(all, "ON UPDATE "+c.OnUpdate)
	}
	if c.Invisible {
		all = append(all, "INVISIBLE")
	}
	all = append(all, c.notes...)
	if c.Comment != "" {
		all = append(all, c.Comment)
	}
	return strings.Join(all, "; ")
}
