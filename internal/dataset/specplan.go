package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/terapush/terapush/pkg/rows"
)

// specPlan is a checked spec.
type specPlan struct {
	schema  rows.Schema
	columns []columnPlan
	order   []int // of filling them
}

// columnPlan is a checked column: derived or drawn.
type columnPlan struct {
	column rows.Column

	derived   derived
	numbering numbering
	term      *rows.Term // of the row's number, if the column can be in a key; its Column is not set

	drawn       drawing
	stream      string    // the column whose stream that is; "": its own
	follows     dependent // in place of drawn: on column of
	of          int
	sampled     int64                         // bytes of the file that the values are from
	parents     func(start uint64) *firstRows // of a reference to the table itself
	least, most int64                         // of numbers, unless they go on with the rows
	wants       int64                         // different values, of a column where a reader would miss them; 0: any number will do
}

// drawing makes the generator of a column whose stream has a state at row 0.
type drawing func(start uint64) generator

// bounds are those of an integer column, as rows.Column has them. Of zeros alone they are 0 and 1: both 0 would be
// those of the type. A column that goes on with the rows has none.
func (plan *columnPlan) bounds() (least, most int64) {
	if plan.derived == nil && plan.least == 0 && plan.most == 0 {
		return 0, 1
	}
	return plan.least, plan.most
}

// isBeyond reports whether some values of an unsigned column have 64 bits, so that its bounds as int64 say nothing.
func (plan *columnPlan) isBeyond(t specType) bool {
	return t.Type == rows.Uint64 && (plan.least < 0 || plan.most < 0)
}

// specPlanner checks a spec and fills in its defaults.
type specPlanner struct {
	*Spec
	problems []problem
	limit    int64 // the last row that all derived columns have a value for
	limiting string
	entries  int64 // of the tables of all distributions, at most
	longest  int   // of all words
	prose    func() string

	columns []columnPlan
	planned []bool // begun; a column without a name is still being planned, or has a problem
	order   []int  // in which columns can be filled: those that depend on others behind them
}

func (p *specPlanner) add(at, format string, args ...any) {
	p.problems = append(p.problems, problem{at, fmt.Sprintf(format, args...)})
}

// plan checks a spec, fills in what is missing and writes its values in their one notation. A spec with problems has
// no plan.
func (s *Spec) plan() (*specPlan, []problem) {
	p := &specPlanner{Spec: s, limit: 1<<63 - 1}
	p.prose = sync.OnceValue(func() string { return textFor(p.longest) }) // one for all columns
	if s.Version != SpecVersion {
		p.add("version", "version %d is not there: this terapush knows version %d", s.Version, SpecVersion)
		return nil, p.problems
	}
	p.names()

	p.columns, p.planned = make([]columnPlan, len(s.Columns)), make([]bool, len(s.Columns))
	for i := range s.Columns {
		p.planColumn(i)
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	plan := &specPlan{columns: p.columns, order: p.order}

	plan.schema.Dataset = s.Name
	for _, c := range plan.columns {
		plan.schema.Columns = append(plan.schema.Columns, c.column)
	}
	if p.entries > maxEntries {
		p.add("columns", "columns: zipf and normal columns of so many values would take more than %d entries of tables",
			maxEntries)
	}
	if row := plan.schema.MaxRowBytes(); row > maxSpecRow {
		p.add("columns", "a row has up to %d bytes: %d at most", row, maxSpecRow)
	}
	plan.schema.Number = p.number(plan.columns)
	p.unique(plan.columns)
	p.primary(plan.columns)
	plan.schema.Primary, plan.schema.Unique = p.Primary, p.Unique
	if p.Primary == nil {
		plan.schema.Primary = p.Key
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}

	if p.limit < plan.schema.MaxNumber() {
		plan.schema.Limit, plan.schema.Limiting = p.limit, p.limiting
	}
	if p.limit < 1 {
		p.add("columns", "columns: a sequence has a value for one row only")
		return nil, p.problems
	}
	if room := plan.room(); s.Rows > room {
		p.add("rows", "rows: %d are too many: the sequences have values for %d rows, since half of them are for probes", s.Rows, room)
		return nil, p.problems
	}
	return plan, nil
}

// room is how many rows the derived columns have values for. The upper half is for probes.
func (p *specPlan) room() int64 {
	return p.schema.MaxNumber()/2 + 1
}

// Room returns how many rows the spec has values for; it has been read without an error.
func (s *Spec) Room() int64 {
	plan, problems := s.plan()
	if len(problems) > 0 {
		return 0
	}
	return plan.room()
}

// planColumn plans a column unless it is planned, and reports whether that has ended.
func (p *specPlanner) planColumn(i int) bool {
	if p.planned[i] {
		return slices.Contains(p.order, i)
	}
	p.planned[i] = true
	name := p.Columns[i].Name
	c := &columnPlanner{specPlanner: p, c: &p.Columns[i], at: []string{"columns", name}, name: "column " + quoted(name)}
	p.columns[i] = c.plan()
	p.order = append(p.order, i)
	return true
}

// names checks what the dataset and its columns are called.
func (p *specPlanner) names() {
	if p.Name == "" || len(p.Name) > maxName || strings.IndexFunc(p.Name, notInNames) >= 0 {
		p.add("name", "name %s: a dataset's name has 1 to %d letters of ASCII, digits, _ and -: write name: …",
			quoted(p.Name), maxName)
	}
	if p.Rows < 0 {
		p.add("rows", "rows: %d is negative", p.Rows)
	}
	if len(p.Columns) == 0 {
		p.add("columns", "columns: a table has at least one")
	}
	if len(p.Columns) > maxColumns {
		p.add("columns", "columns: %d are too many: a table has %d at most", len(p.Columns), maxColumns)
	}

	seen := map[string]string{}
	for _, c := range p.Columns {
		at := path("columns", c.Name)
		lower := strings.ToLower(c.Name)
		other, twice := seen[lower]
		seen[lower] = c.Name
		switch {
		case twice && other == c.Name:
			p.add(at, "column %s is here twice", quoted(c.Name))
		case twice:
			p.add(at, "columns %s and %s are one to databases that ignore case", quoted(other), quoted(c.Name))
		case CheckColumnName(c.Name) != nil:
			p.add(at, "column %s: %v", quoted(c.Name), CheckColumnName(c.Name))
		}
	}
}

// CheckColumnName returns why a column of a spec cannot have the name.
func CheckColumnName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("a name has 1 to %d bytes", maxName)
	case strings.IndexFunc(name, badInColumns) >= 0 || strings.TrimSpace(name) != name:
		return errors.New("a name has characters that can be seen, and no backslash")
	}
	return nil
}

func notInNames(r rune) bool {
	return r >= 0x80 || r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

func badInColumns(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("\\\uFFFD", r) }

// number checks the key, chooses one if there is none and the choice is clear, and returns the row number made of it.
func (p *specPlanner) number(columns []columnPlan) []rows.Term {
	if len(p.Key) == 0 {
		p.Key = p.defaultKey(columns)
	}
	if len(p.Key) == 0 {
		return nil
	}
	if len(p.Key) > maxKey {
		p.add("key", "key: %d columns are not there yet: one to %d", len(p.Key), maxKey)
		return nil
	}

	var terms []rows.Term
	var all []numbering
	for k, name := range p.Key {
		i := p.index("key", "key", name)
		if i < 0 {
			return nil
		}
		c := columns[i]
		if why := notAKey(c); why != "" {
			p.add("key", "key: %s", why)
			return nil
		}
		if len(p.Key) > 1 && !c.term.Ordered() {
			p.add("key", "key [%s]: a uuid and a scatter number the rows by themselves: make it a key of one column",
				strings.Join(p.Key, ", "))
			return nil
		}
		if slices.Contains(p.Key[:k], name) {
			p.add("key", "key: column %s is here twice", quoted(name))
			return nil
		}
		term := *c.term
		term.Column = i
		terms, all = append(terms, term), append(all, c.numbering)
	}

	a, b := columns[terms[0].Column].numbering, columns[terms[len(terms)-1].Column].numbering
	switch {
	case len(terms) == 1 && (a.every != 1 || a.cycle != 0):
		p.add("key", "key [%s]: the column has every %d and cycle %d, so rows share a key: leave both out, "+
			"or make a key of two columns",
			p.Key[0], a.every, a.cycle)
	case nested(all):
	case len(terms) > 2:
		p.add("key", "key [%s]: the first needs no cycle, the last no every, and every of each is every × cycle of the next: "+
			"rows would share a key, or keys be left out", strings.Join(p.Key, ", "))
	case b.cycle == 0 && a.cycle > 0 && a.cycle == b.every:
		p.add("key", "key: the column with every comes first: write key: [%s, %s]", p.Key[1], p.Key[0])
	default:
		p.add("key", "key [%s, %s]: the first needs every: n and no cycle, and the second cycle: n and no every; "+
			"here %s has every %d and cycle %d, and %s has every %d and cycle %d: rows would share a key, or keys be left out",
			p.Key[0], p.Key[1], p.Key[0], a.every, a.cycle, p.Key[1], b.every, b.cycle)
	}
	return terms
}

// nested reports whether each column of a key starts over whenever the one before it moves on, so that together they
// number the rows.
func nested(all []numbering) bool {
	for i, n := range all[1:] {
		slow := all[i].every
		if n.cycle == 0 || slow%n.every != 0 || slow/n.every != n.cycle {
			return false
		}
	}
	return all[0].cycle == 0 && all[len(all)-1].every == 1
}

// notAKey says why a column cannot be part of a key, "" if it can.
func notAKey(c columnPlan) string {
	name := quoted(c.column.Name)
	if c.derived == nil {
		return fmt.Sprintf("column %s is drawn, and drawn values repeat: a key needs a sequence, a uuid or a scatter", name)
	}
	if c.term == nil {
		return fmt.Sprintf("column %s is a hash, which repeats: a key needs a sequence, a uuid or a scatter", name)
	}

	s, isSequence := c.derived.(*sequence)
	switch {
	case !isSequence:
		return ""
	case c.column.Type == rows.Date:
		return fmt.Sprintf("column %s is a date, which is not there yet as a key: use a bigint, a timestamp or a text", name)
	case s.before+s.after != "":
		return fmt.Sprintf("column %s has text around its number, which is not there yet as a key: "+
			"use another column, or format: \"{:0%d}\"", name, s.digits)
	case c.column.Type.IsTime() && c.column.Scale > 0:
		return fmt.Sprintf("column %s is a %s, which is not there yet as a key: write the type without digits and step: 1us, "+
			"or give the table a bigint column as its key", name, TypeName(c.column))
	case s.step != 1 && c.column.Type.IsTime():
		return fmt.Sprintf("column %s has a step of %d microseconds, which is not there yet in a key: write step: 1us, "+
			"or give the table a bigint column as its key", name, s.step)
	case s.step != 1:
		return fmt.Sprintf("column %s has step %d, which is not there yet in a key: leave the step out, "+
			"or give the table another column as its key", name, s.step)
	default:
		return ""
	}
}

// defaultKey returns the only column that numbers the rows, or adds the reason why there is no such column.
func (p *specPlanner) defaultKey(columns []columnPlan) []string {
	var all []string
	for _, c := range columns {
		if notAKey(c) == "" && c.numbering == (numbering{every: 1}) {
			all = append(all, c.column.Name)
		}
	}

	switch len(all) {
	case 1:
		return all
	case 0:
		p.add("columns", "table %s has no column by which a row is found again: add one, "+
			"as id: {type: bigint, sequence: {start: 1}}, and key: [id]; or write key: hidden, which adds one", p.Name)
	default:
		p.add("columns", "columns %s number the rows, each by itself: say which is the key, as key: [%s]",
			strings.Join(all, ", "), all[0])
	}
	return nil
}

// index returns the index of a column that key or unique names, −1 after adding that there is none.
func (p *specPlanner) index(at, what, name string) int {
	if i := p.columnIndex(name); i >= 0 {
		return i
	}
	if len(p.problems) < maxProblems { // each is compared with all columns
		p.add(at, "%s: %s", what, unknown("column", name, p.columnNames()))
	}
	return -1
}

// unique checks that each set of columns holds derived ones that decide the row.
func (p *specPlanner) unique(columns []columnPlan) {
	for i, set := range p.Unique {
		if len(set) == 0 {
			p.add(path("unique", strconv.Itoa(i)), "unique: an empty list of columns")
			continue
		}
		p.decided(path("unique", strconv.Itoa(i)), "unique", set, columns)
	}
}

// primary checks the primary key of a table that is made. That of the rows' numbers needs no word.
func (p *specPlanner) primary(columns []columnPlan) {
	at, what, key := "primary", "primary", p.Primary
	if p.Primary == nil {
		at, what, key = "key", "key", p.Key
	} else if len(key) > 0 {
		p.decided(at, what, key, columns)
	}
	for _, name := range key {
		i := p.columnIndex(name)
		if i >= 0 && (columns[i].column.Nullable || columns[i].column.TakesNull) {
			p.add(at, "%s: column %s may be NULL, and a primary key has no NULL: leave nulls out, or write primary: []", what, quoted(name))
		}
	}
	if slices.Equal(p.Primary, p.Key) {
		p.Primary = nil
	}
}

// decided checks that a set of columns holds derived ones that decide the row.
func (p *specPlanner) decided(at, what string, set []string, columns []columnPlan) {
	what += " [" + strings.Join(set, ", ") + "]"
	var derived []numbering
	var drawn string
	seen := map[string]bool{}
	ok := true
	for _, name := range set {
		if seen[name] {
			p.add(at, "%s: column %s is here twice", what, quoted(name))
			ok = false
			continue
		}
		seen[name] = true
		k := p.index(at, what, name)
		if k < 0 {
			ok = false
			continue
		}
		if columns[k].derived == nil {
			drawn = name
			continue
		}
		derived = append(derived, columns[k].numbering)
	}

	switch {
	case !ok || decide(derived):
	case len(set) == 1 && drawn != "":
		p.add(at, "column %s is unique and drawn: drawn values repeat. Derive it: sequence, with format for a text, uuid or scatter",
			quoted(drawn))
	default:
		p.add(at, "%s: these columns do not decide the row: one of them must be a uuid, a scatter or a sequence without every and cycle, "+
			"or two together (every: n, and cycle: n)", what)
	}
}

// decide reports whether no two rows have the same values in all of some columns. One without a cycle tells
// which run of equal numbers a row is in, and one that starts over, but not within such a run, where in it.
func decide(all []numbering) bool {
	known := int64(0) // the row's number is known but for its remainder by known; 0 = unknown
	for _, s := range all {
		if s.every > 0 && s.cycle == 0 && (known == 0 || s.every < known) {
			known = s.every
		}
	}

	for again := known > 1; again; {
		again = false
		for _, s := range all {
			if s.every > 0 && s.cycle > 0 && s.every < known && known%s.every == 0 && known/s.every <= s.cycle {
				known, again = s.every, true
			}
		}
	}
	return known == 1
}
