package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Tables is a file of several tables, each an ordinary spec, in the order in which they are filled: a table comes after
// those that it refers to. Its JSON is kept with the run.
type Tables struct {
	Name   string      `json:"name"`
	Scale  Scale       `json:"scale,omitzero"` // that they were read with
	Tables []SpecTable `json:"tables"`
}

// SpecTable is one of them.
type SpecTable struct {
	Name    string   `json:"name"`    // in the database, as name or schema.name
	Parents []string `json:"parents"` // the tables of the file that it refers to, without those of Broken
	Broken  []string `json:"broken"`  // columns that are NULL, since the table that they refer to is not filled before this one
	Spec    *Spec    `json:"spec"`    // with its number of rows
}

// Scale is how many rows the tables get, in place of what the file says.
type Scale struct {
	Rows  int64   `json:"rows,omitempty"`  // of every table; 0: not given
	Times float64 `json:"times,omitempty"` // what the file says, times this, rounded, and at least one row; 0: not given
}

func (s Scale) of(rows int64) int64 {
	switch {
	case s.Rows > 0:
		return s.Rows
	case s.Times == 0 || rows < 1:
		return rows
	}
	return max(1, int64(math.Min(math.Round(float64(rows)*s.Times), 1<<62)))
}

// maxTables bounds the time to find their order.
const maxTables = 2000

var tablesKey = regexp.MustCompile(`(?m)^["']?tables["']?[ \t]*:`)

// HasTables reports whether a file is one of several tables.
func HasTables(text []byte) bool { return tablesKey.Match(text) }

// ParseTables reads a file of several tables. In it, ref: customers.id stands for a key of another table, and
// ${customers.rows} for the number of its rows. The error is like that of ParseSpec.
func ParseTables(file string, text []byte, parameters map[string]string, scale Scale) (*Tables, error) {
	r := &specReader{file: file, given: parameters, lines: map[string]int{}}
	read := r.tables(text, scale)
	if len(r.problems) > 0 {
		return nil, r.err()
	}

	f := &tableFile{specReader: r, all: read, byName: map[string]*readTable{}}
	for _, t := range read {
		f.byName[t.Name] = t
	}
	f.resolve()
	order := f.order()
	if len(r.problems) > 0 {
		return nil, r.err()
	}

	all := &Tables{Name: r.nameOfFile(), Scale: scale}
	for _, t := range order {
		if _, problems := t.Spec.plan(); len(problems) > 0 {
			r.lines = t.lines
			for _, p := range problems {
				text := p.text
				if p.at == "rows" && scale != (Scale{}) {
					text += "; --rows and --times are for all tables: without them each has the rows that the file says"
				}
				r.add(r.lineOf(p.at), "table %s: %s", quoted(t.Name), text)
			}
		}
		all.Tables = append(all.Tables, t.SpecTable)
	}
	if len(r.problems) > 0 {
		return nil, r.err()
	}
	return all, nil
}

// Differences lists how the rows of a table differ from those of an earlier one, as Spec.Differences does.
func (t *SpecTable) Differences(was *SpecTable) []string {
	if t.Name != was.Name {
		return []string{fmt.Sprintf("table %s is in its place", quoted(t.Name))}
	}
	all := t.Spec.Differences(was.Spec)
	if t.Spec.Rows != was.Spec.Rows {
		all = append(all, fmt.Sprintf("rows was %d, now %d", was.Spec.Rows, t.Spec.Rows))
	}
	return all
}

// Find returns a table by name.
func (all *Tables) Find(name string) (SpecTable, error) {
	var names []string
	for _, t := range all.Tables {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return SpecTable{}, errors.New(unknown("table", name, names))
}

// tableFile is a file whose tables are read, in its order, and refer to each other by name.
type tableFile struct {
	*specReader
	all       []*readTable
	byName    map[string]*readTable
	following []*SpecColumn // sequences of keys that are sequences of keys
}

type readTable struct {
	SpecTable
	lines map[string]int
	line  int
	keys  []entry
	links []link
}

// link is a column that refers to a table of the same file.
type link struct {
	*SpecColumn
	parent string
}

// tables reads the tables, without those of what they refer to.
func (r *specReader) tables(text []byte, scale Scale) (all []*readTable) {
	top, version, ok := r.open(text, "version", "parameters", "tables")
	if !ok {
		return nil
	}
	if tables, is := find(top, "tables"); is {
		for _, t := range r.mapping(tables.value, "tables") {
			all = append(all, r.sized(t, scale))
		}
	}
	if len(all) < 1 || len(all) > maxTables {
		r.add(1, "tables: %d of them: a file has 1 to %d", len(all), maxTables)
		return nil
	}

	for _, t := range all {
		rows := t.Spec.Rows
		t.Spec = r.spec(t.keys)
		t.Spec.Version, t.Spec.Name, t.Spec.Rows = version, NameOf(t.Name[strings.LastIndexByte(t.Name, '.')+1:]), rows
		t.lines, r.lines = r.lines, map[string]int{}
	}
	r.allUsed()
	return all
}

// sized reads the name of a table and its number of rows, which others may use.
func (r *specReader) sized(t entry, scale Scale) *readTable {
	one := &readTable{SpecTable: SpecTable{Name: t.key, Parents: []string{}, Broken: []string{}, Spec: new(Spec)}, line: t.line}
	if t.key == "" || strings.ContainsFunc(t.key, func(c rune) bool { return c == ',' || c == ';' || unicode.IsControl(c) }) {
		r.add(t.line, "table %s: write it as name or schema.name", quoted(t.key))
	}
	one.keys = r.mapping(t.value, "table "+quoted(t.key), "rows", "most", "key", "primary", "unique", "columns")
	if rows, is := find(one.keys, "rows"); is {
		one.Spec.Rows = r.count(rows, "rows")
	}
	one.Spec.Rows = scale.of(one.Spec.Rows)
	if most, is := find(one.keys, "most"); is {
		one.Spec.Rows = min(one.Spec.Rows, r.count(most, "most"))
	}
	if one.Spec.Rows == 0 {
		r.add(t.line, "table %s: rows is missing: write it, or give --rows for all tables", quoted(t.key))
	}

	parameter := t.key + ".rows"
	r.given[parameter] = strconv.FormatInt(one.Spec.Rows, 10)
	r.names = append(r.names, parameter)
	return one
}

// NameOf makes the name of a dataset of any text.
func NameOf(text string) string {
	name := strings.Map(func(c rune) rune {
		if notInNames(c) {
			return '_'
		}
		return c
	}, text)
	return name[:min(len(name), maxName)]
}

// wrong adds a problem of a table's column.
func (f *tableFile) wrong(t *readTable, c *SpecColumn, format string, args ...any) {
	f.lines = t.lines
	at := f.lineOf(path("columns", c.Name))
	f.add(at, "table "+quoted(t.Name)+": column "+quoted(c.Name)+": "+format, args...)
}

// resolve gives each short reference what the parent's column says, and finds which table refers to which.
func (f *tableFile) resolve() {
	for _, t := range f.all {
		for i := range t.Spec.Columns {
			switch c := &t.Spec.Columns[i]; g := c.Generator.(type) {
			case *SpecRef:
				f.drawn(t, c, g)
			case *SpecSequence:
				f.derived(t, c, g)
			}
		}
	}
}

// drawn resolves a reference to any row of the parent.
func (f *tableFile) drawn(t *readTable, c *SpecColumn, ref *SpecRef) {
	if ref.isOwn(t.Name) && f.own(t, c, ref) {
		return
	}
	if ref.short != "" {
		parent, of := f.parentOf(t, c, ref.short, true)
		if of == nil {
			return
		}
		ref.Table, ref.Rows = parent.Name, parent.Spec.Rows
		ref.follow(of)
		if ref.With != "" {
			ref.Rows = 0 // those of the column that draws the row, which also waits for the parent
			return
		}
		if q, is := of.Generator.(*SpecSequence); is {
			f.pair(t, c, ref, q)
		}
		if ref.Unchecked {
			return
		}
	}

	parent := f.byName[ref.Table]
	if parent == nil { // of another file
		return
	}
	t.links = append(t.links, link{c, parent.Name})
	if parent.Spec.Rows < ref.Rows {
		f.wrong(t, c, "ref: %d rows of table %s, which gets %d: write ref: %s.%s",
			ref.Rows, quoted(ref.Table), parent.Spec.Rows, shortened(ref.Table), shortened(ref.Column))
	}
}

// own resolves a reference to the table itself. It reports false where that draws one column of a key of two, of which
// not every pair is among the first rows: that one is NULL.
func (f *tableFile) own(t *readTable, c *SpecColumn, ref *SpecRef) bool {
	_, of := f.parentOf(t, c, cmp.Or(ref.short, t.Name+"."+ref.Column), true)
	if of == nil {
		return true
	}
	if q, is := of.Generator.(*SpecSequence); is && ref.short != "" && (q.Every != 1 || q.Cycle != 0) {
		return false
	}
	if why := t.Spec.ownColumn(t.Name, c, ref); why != "" {
		f.wrong(t, c, "ref: %s", why)
	}
	ref.Rows = min(ref.Rows, t.Spec.Rows)
	return true
}

// pair resolves a reference to a column of a key of two, and leaves out the parent's last rows if they are fewer than
// the column that starts over has values. Of the others every pair is there, so that the two columns are drawn apart.
func (f *tableFile) pair(t *readTable, c *SpecColumn, ref *SpecRef, of *SpecSequence) {
	startsOver := of.Cycle > 0 && of.Cycle <= ref.Rows
	if of.Every == 1 && !startsOver {
		return
	}
	ref.Every, ref.Cycle = of.Every, of.Cycle
	whole := ref.Rows - ref.Rows%of.Every
	if whole == 0 {
		f.wrong(t, c, "ref: table %s gets %d rows, fewer than column %s has before it goes on or starts over: give it more",
			quoted(ref.Table), ref.Rows, quoted(ref.Column))
		return
	}
	ref.Rows = whole
}

// derived resolves a sequence that goes through the rows of a parent.
func (f *tableFile) derived(t *readTable, c *SpecColumn, q *SpecSequence) {
	if q.Of == "" {
		return
	}
	parent, of := f.parentOf(t, c, q.Of, false)
	if of == nil {
		return
	}
	if q.Start+q.Step+q.Format+q.Most != "" {
		f.wrong(t, c, "sequence: start, step, most and format are those of column %s of table %s: leave them out",
			quoted(of.Name), quoted(parent.Name))
	}
	reached := (t.Spec.Rows-1)/max(q.Every, 1) + 1
	if q.Cycle > 0 {
		reached = min(reached, q.Cycle)
	}
	if reached > parent.Spec.Rows {
		f.wrong(t, c, "sequence: its %d rows need %d rows of table %s, which gets %d: give it a cycle or a larger every, or fewer rows",
			t.Spec.Rows, reached, quoted(parent.Name), parent.Spec.Rows)
	}
	t.links = append(t.links, link{c, parent.Name})
	q.Of = ""
	switch g := of.Generator.(type) {
	case *SpecSequence:
		q.Start, q.Step, q.Format, q.Most = g.Start, g.Step, g.Format, g.Most
		return
	case *SpecUUID:
		same := *g
		same.Of = cmp.Or(g.Of, of.Name) // which its bits are made of
		c.Generator = &same
	case *SpecScatter:
		same := *g
		c.Generator = &same
	}
	if q.Every != 1 || q.Cycle != 0 {
		f.wrong(t, c, "sequence: column %s of table %s is no sequence, so that rows follow it one by one: leave every and cycle out",
			quoted(of.Name), quoted(parent.Name))
	}
}

// parentOf finds table.column, of which either may have a dot, and gives a column without a type its type. paired says
// that the column may be one of a key of two. It is nil after adding what is wrong.
func (f *tableFile) parentOf(t *readTable, c *SpecColumn, short string, paired bool) (*readTable, *SpecColumn) {
	parent, of := f.column(short)
	if of == nil {
		f.wrong(t, c, "%s: there is no such column in this file; a key of a table that is not in it is ref: {table: …, column: …, rows: …}",
			quoted(short))
		return nil, nil
	}
	if c.Type == "" {
		c.Type = of.Type
	}

	switch g := of.Generator.(type) {
	case *SpecUUID, *SpecScatter:
		return parent, of
	case *SpecSequence:
		if !paired && (g.Every != 1 || g.Cycle != 0) {
			break
		}
		if g.Of != "" && !slices.Contains(f.following, of) {
			f.following = append(f.following, of)
			f.derived(parent, of, g)
			f.following = f.following[:len(f.following)-1]
		}
		return parent, of
	}
	f.wrong(t, c, "%s: it can be referred to if it is a uuid, a scatter, or a sequence, for other sequences with neither every nor cycle", quoted(short))
	return nil, nil
}

func (f *tableFile) column(short string) (*readTable, *SpecColumn) {
	for _, t := range f.all {
		name, is := strings.CutPrefix(short, t.Name+".")
		if of := t.Spec.column(name); is && of != nil {
			return t, of
		}
	}
	return nil, nil
}
