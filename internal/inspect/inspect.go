// Package inspect writes the spec of a dataset whose rows fit a table that exists: in the order of its columns, with
// its keys derived, its references and CHECKs as ranges and lists, and comments for what a spec cannot say.
package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Write returns the file of a dataset for the table, with server as what it was read from. Where columns have shapes it
// imitates them; keepValues writes the texts of common values, in place of v1, v2 … The error names every column that
// needs a value which no generator makes.
func Write(d *loader.Description, server string, keepValues bool) ([]byte, error) {
	w := newWriter(d, nil)
	w.keepValues = keepValues
	if d.Analyze != "" && !w.hasShapes() {
		return nil, fmt.Errorf("the server has no statistics of table %s, or does not show them to this user: run %s, or leave --stats out",
			tableName(d), d.Analyze)
	}
	w.chooseKey()
	w.referToSelf()
	w.deriveUniques()
	for _, c := range w.columns {
		w.draw(c)
	}
	if len(w.key) == 0 && len(w.problems) == 0 {
		w.problems = append(w.problems, errNoKey)
	}
	if len(w.problems) > 0 {
		return nil, fmt.Errorf("no dataset can be made for table %s: %w", tableName(d), errors.Join(w.problems...))
	}

	text := w.file(server, cmp.Or(max(d.Rows, 0), uncounted))
	_, err := dataset.ParseSpec(w.name+".yaml", []byte(text), nil)
	if err != nil { // perhaps more than its sequences have values for
		text = w.file(server, 0)
		_, err = dataset.ParseSpec(w.name+".yaml", []byte(text), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("no dataset can be made for table %s: %w", tableName(d), err)
	}
	return []byte(text), nil
}

// uncounted is how many rows a file has for a table that is empty or that the server has not counted: the default of a
// push, 1 GiB, is many for a narrow table.
const uncounted = 1_000_000

var errNoKey = errors.New("it has no column by which a row is found again: " +
	"an integer, a text or a timestamp that no foreign key and no list of values bounds; " +
	"a file with key: hidden makes a table that has one more")

// tableName is the table for people.
func tableName(d *loader.Description) string { return d.Schema + "." + d.Table }

// writer decides column by column what a spec says.
type writer struct {
	*loader.Description
	name  string // of the dataset
	label string // of the table in a file of several; "" in a file of its own
	// unknownRows says that Rows is no number of the server's.
	unknownRows bool
	most        int64 // rows for which the derived columns have values, in a file of several
	keepValues  bool  // texts of common values, in place of v1, v2 …
	columns     []*column
	key         []string
	primary     []string // the table's, if its columns are in the spec
	unique      [][]string
	unknown     []string // constraints that are not understood
	problems    []error
}

// column is a column of the table, and what the spec says of it.
type column struct {
	*loader.Column
	limits
	reference *loader.Reference // of this column alone
	own       *column           // of the same table, which the reference is to, if rows can be drawn from its first ones
	parent    *parent           // in the same file; nil if it is not there
	with      *column           // which draws the parent's row, for a reference of several columns
	unchecked bool              // the parent is filled later
	earlier   *column           // whose times are not later, as a CHECK has it
	kind      string            // the type in a spec
	generator string            // as a spec writes it; "" until it is chosen
	derived   bool
	notes     []string
	omitted   string // why it is left out; "" if it is not

	// Of a type that only the server knows: its name, and values that the server takes for it.
	sql      string
	examples []string
}

// newWriter reads a table. inFile reports whether a reference of two columns is to a table of the same file; nil: none
// is.
func newWriter(d *loader.Description, inFile func(r *loader.Reference) bool) *writer {
	w := &writer{Description: d, name: dataset.NameOf(d.Table)}
	for i := range d.Columns {
		table := d.Columns[i]
		c := &column{Column: &table}
		if c.isNarrow() && c.Values.Type == rows.Int32 && (w.inKey(c.Name) || c.Numbered != "") {
			c.Values = &rows.Column{Name: c.Name, Type: rows.Int16} // whose sequences end before the column does
		}
		if w.inKey(c.Name) || w.refers(c.Name) {
			c.readWholeNumbers()
		}
		if c.Values == nil && c.Type == "json" { // PostgreSQL's, which takes documents as text only
			c.Values, c.sql = &rows.Column{Name: c.Name, Type: rows.JSON}, c.Type
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
	w.readReferences(inFile)
	w.readChecks()
	return w
}

// wholeNumbers are types of PostgreSQL and MySQL that take whole numbers, as keys that come from Oracle have.
var wholeNumbers = regexp.MustCompile(`^(?:numeric|decimal)(?:\((\d+)(?:,0)?\))?(?: unsigned)?$`)

// readWholeNumbers reads a decimal of them as the integers of which sequences are.
func (c *column) readWholeNumbers() {
	m := wholeNumbers.FindStringSubmatch(c.Type)
	if m == nil {
		return
	}
	c.Values = &rows.Column{Name: c.Name, Type: rows.Uint64}
	const all = 20 // digits, of which 64 bits have no more
	if digits, err := strconv.Atoi(m[1]); err == nil && digits < all {
		c.Values.Most = math.MaxInt64
		if digits < all-1 {
			c.Values.Most = pow10(digits) - 1
		}
	}
}

// refers reports whether a column is in a foreign key.
func (w *writer) refers(name string) bool {
	return slices.ContainsFunc(w.References, func(r loader.Reference) bool { return slices.Contains(r.Columns, name) })
}

// leaveOut leaves a column out for a reason, or adds that it cannot be.
func (w *writer) leaveOut(c *column, why string) {
	c.omitted = why
	if !c.Optional() {
		w.problems = append(w.problems, fmt.Errorf("column %q: %s, it takes no NULL and has no default: give it one, "+
			"or write its line by hand, with type: text, sql and values", c.Name, why))
	}
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

func (w *writer) readChecks() {
	for _, condition := range w.Checks {
		found, all := understand(condition, w.Escapes)
		if !w.limit(found) || !all {
			w.unknown = append(w.unknown, condition)
		}
	}
}

// limit adds limits of columns by name, and reports whether all can be kept.
func (w *writer) limit(some found) bool {
	all := true
	for name, l := range some {
		c := w.find(name)
		if c != nil && l.pattern != "" {
			l.pattern = w.fitted(c, l.pattern)
		}
		if c == nil || !w.canKeep(c, l) {
			all = false
			continue
		}
		c.limits = c.and(l)
	}
	return all
}

// fitted returns the pattern with fewer of the repetitions that nothing bounds, if the column is too short for them.
func (w *writer) fitted(c *column, pattern string) string {
	for most := mostRepeats; most >= 0; most-- {
		shorter := strings.ReplaceAll(pattern, fmt.Sprintf("{0,%d}", mostRepeats), fmt.Sprintf("{0,%d}", most))
		if w.accepted(nil, entry{c, "pattern: " + quoted(shorter)}) {
			return shorter
		}
	}
	return pattern
}

// canKeep reports whether generators can keep a column in limits that are not those of a list or a range.
func (w *writer) canKeep(c *column, l limits) bool {
	switch {
	case len(l.out) > 0:
		return c.canBeWithout()
	case l.after != "":
		return c.isDay() && w.find(l.after) != nil
	case l.pattern != "":
		return c.omitted == "" && w.accepted(nil, entry{c, "pattern: " + quoted(l.pattern)})
	}
	return true
}

// draw chooses how a column is drawn that is not derived.
func (w *writer) draw(c *column) {
	if c.omitted != "" {
		return
	}
	c.own = w.ownParent(c)
	if c.reference != nil && c.parent == nil && c.own == nil {
		c.notes = append(c.notes, "REFERENCES "+c.reference.Schema+"."+c.reference.Table+" ("+c.reference.Of[0]+")"+say(c.reference))
	}
	if c.generator != "" {
		if c.after != "" {
			c.notes = append(c.notes, "not always after "+c.after+", as a CHECK wants")
		}
		return
	}
	if c.with != nil {
		w.draw(c.with)
	}
	if c.reference != nil && c.parent == nil && c.own == nil && !canBeDrawn(c.reference) && c.Nullable {
		c.omitted = strings.Join(c.notes, ", ") + ": NULL"
		return
	}

	why := "there is no generator for " + c.Type + " yet"
	follows := c.follows()
	if earlier := w.find(c.after); earlier != nil {
		c.after = "" // the other may be after this one
		if w.draw(earlier); c.generator != "" {
			return
		}
		c.earlier = earlier
	}
	for _, generator := range slices.Concat(follows, w.shaped(c), c.draws()) {
		with := []entry{{c, generator}}
		for e := c.earlier; e != nil && e.omitted == ""; e = e.earlier {
			with = append(with, entry{e, e.generator})
		}
		if c.own != nil {
			with = append(with, entry{c.own, c.own.generator})
		}
		if c.with != nil && c.with.omitted == "" {
			with = append(with, entry{c.with, c.with.generator})
		}
		err := w.try(nil, with...)
		if err == nil {
			c.generator = generator
			if follows != nil && generator != follows[0] {
				c.notes = append(c.notes, "not always after "+c.earlier.Name+", as a CHECK wants")
			}
			return
		}
		why = generator + " is no generator for it: " + err.Error()
	}
	w.leaveOut(c, why)
}

// accepted reports whether a spec may have the columns, with the key.
func (w *writer) accepted(key []string, all ...entry) bool { return w.try(key, all...) == nil }

// unkeyed begins a file whose key is none of its table's columns.
const unkeyed = "version: 1\nname: t\nkey: [terapush_row]\ncolumns:\n  terapush_row: {type: bigint, sequence: {start: 1}}\n"

// try returns why a spec may not have the columns, with the key; no key is any.
func (w *writer) try(key []string, all ...entry) error {
	text := unkeyed
	if key != nil {
		text = "version: 1\nname: t\nkey: " + names(key) + "\nprimary: []\ncolumns:\n"
	}
	for _, e := range all {
		text += e.line() + "\n"
	}
	return w.parsed(text, all)
}
