package inspect

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
)

// unknownRows is how many rows a table gets of which the server does not know the number.
const unknownRows = 1000

// fewRows is from how many rows on a file does not say that a table can have no more.
const fewRows = 1_000_000_000

// WriteSchema returns the file of a dataset for all tables of a schema, with references in the short form. A table that
// it cannot describe is a comment with the reason. prefix comes before the names of the tables: "", or the schema and a
// dot. keepValues is that of Write.
func WriteSchema(all []*loader.Description, schema, prefix, server string, keepValues bool) ([]byte, error) {
	left := unfit(all) // why tables are left out
	for {
		s := newSchema(all, prefix, left, keepValues)
		s.write()
		if s.failed { // others refer to what is left out by now
			continue
		}
		text := s.file(fmt.Sprintf("Schema %s of %s", schema, server))
		if len(left) == len(all) {
			return nil, fmt.Errorf("no dataset can be made for any table of schema %s:\n%s", schema, text)
		}
		_, err := dataset.ParseTables(schema+".yaml", []byte(text), nil, dataset.Scale{})
		if err == nil {
			return []byte(text), nil
		}
		if !s.leaveOut(err) {
			return nil, fmt.Errorf("no dataset can be made for schema %s: %w", schema, err)
		}
	}
}

// schema writes the tables of a schema.
type schema struct {
	tables  []*loader.Description
	writers map[string]*writer // by name, without those of left
	joint   map[*writer][]*joint
	left    map[string]error
	failed  bool // one more is left out
}

func newSchema(all []*loader.Description, prefix string, left map[string]error, keepValues bool) *schema {
	s := &schema{tables: all, writers: map[string]*writer{}, joint: map[*writer][]*joint{}, left: left}
	for _, t := range all {
		if left[t.Table] != nil {
			continue
		}
		d := *t // whose number of rows changes
		w := newWriter(&d, func(r *loader.Reference) bool { return s.isJoint(&d, r) })
		w.label, w.keepValues = prefix+t.Table, keepValues
		if w.Rows < 1 {
			w.Rows = unknownRows
			w.unknownRows = true
		}
		s.writers[t.Table] = w
	}
	for _, w := range s.writers {
		for _, c := range w.columns {
			s.link(w, c)
		}
		for i := range w.References {
			r := &w.References[i]
			s.refuseLeft(w, r)
			if s.isJoint(w.Description, r) && !s.breakJoint(w, r) {
				s.linkJoint(w, r)
			}
		}
	}
	for _, t := range all {
		if w := s.writers[t.Table]; w != nil {
			w.breakCircles()
		}
	}
	return s
}

// refuseLeft adds that a table cannot be filled of which several columns, none of them NULL, refer to one that is left
// out.
func (s *schema) refuseLeft(w *writer, r *loader.Reference) {
	isLeft := r.Schema == w.Schema && s.left[r.Table] != nil
	if len(r.Columns) > 1 && isLeft && slices.Contains(w.unknown, referenceText(r)) {
		w.problems = append(w.problems, fmt.Errorf("columns %s: they refer to table %s, which is left out: "+
			"once that has rows, inspect --table %s describes this one alone", strings.Join(r.Columns, ", "), r.Table, w.label))
	}
}

// link finds the table of the file that a column refers to. If that is left out, no row can refer to it.
func (s *schema) link(w *writer, c *column) {
	r := c.reference
	if r == nil || c.omitted != "" || r.Schema != w.Schema {
		return
	}
	of := s.writers[r.Table]
	why := fmt.Sprintf("it refers to table %s, which is left out", r.Table)
	switch {
	case of != nil:
		c.parent = &parent{of, r.Of[0]}
	case c.Nullable:
		c.omitted = why + ": NULL"
	default:
		w.problems = append(w.problems, fmt.Errorf("column %q: %s: once that has rows, inspect --table %s describes this one alone",
			c.Name, why, w.label))
	}
}

// write decides about all columns: keys first, of which references are made.
func (s *schema) write() {
	keyed := map[*writer]bool{}
	for _, t := range s.tables {
		if w := s.writers[t.Table]; w != nil {
			s.derivedAfterParents(w, keyed)
		}
	}
	failing := map[string]*writer{}
	for name, w := range s.writers {
		for _, c := range w.columns {
			w.draw(c)
		}
		if len(w.key) == 0 && len(w.problems) == 0 {
			w.problems = append(w.problems, errNoKey)
		}
		if len(w.problems) > 0 {
			failing[name] = w
		}
	}
	s.leaveOutFirst(failing)
	s.bound()
}

// leaveOutFirst leaves out the tables that fail though all that they refer to do not: of the others the next try tells
// whether they fail for another reason than that. Of a circle it leaves out all, and says so.
func (s *schema) leaveOutFirst(failing map[string]*writer) {
	s.failed = len(failing) > 0
	waits := func(w *writer) bool {
		return slices.ContainsFunc(w.columns, func(c *column) bool {
			return c.parent != nil && c.parent.writer != w && len(c.parent.problems) > 0
		})
	}

	first := map[string]*writer{}
	for name, w := range failing {
		if !waits(w) {
			first[name] = w
		}
	}
	if len(first) == 0 {
		first = s.circleOf(failing)
	}
	if len(first) == 0 {
		first = failing
	}
	for name, w := range first {
		s.left[name] = errors.Join(w.problems...)
	}
}

// derivedAfterParents chooses the derived columns of a table once those of the tables are chosen that its own may
// follow. It does not wait for others, which may wait for it.
func (s *schema) derivedAfterParents(w *writer, keyed map[*writer]bool) {
	if keyed[w] {
		return
	}
	keyed[w] = true
	for _, c := range w.columns {
		if c.parent != nil && (w.inKey(c.Name) || len(w.Keys) == 0) {
			s.derivedAfterParents(c.parent.writer, keyed)
		}
	}
	for _, j := range s.joint[w] {
		s.derivedAfterParents(j.of, keyed)
	}
	s.joint[w] = slices.DeleteFunc(s.joint[w], func(j *joint) bool { return !j.share(w) })
	w.chooseKey()
	s.deriveReferred(w)
	w.referToSelf()
	w.deriveUniques()
	for _, j := range s.joint[w] {
		j.drawTogether()
	}
}

var tableInError = regexp.MustCompile(`^\S+: table ("(?:[^"\\]|\\.)*"|\S+): (.*)$`)

// leaveOut leaves out the tables that the lines of an error name.
func (s *schema) leaveOut(err error) (found bool) {
	for line := range strings.Lines(err.Error()) {
		m := tableInError.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		for name, w := range s.writers {
			if w.label == m[1] || fmt.Sprintf("%q", w.label) == m[1] {
				s.left[name], found = errors.New(m[2]), true
			}
		}
	}
	return found
}

func (s *schema) file(what string) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("# %s", comment(what+", as terapush inspect has read it."+s.contents()))
	if len(s.tables) > 0 && s.tables[0].StandIn {
		out.WriteString(triedOnStandIn)
	}
	if s.unchecked() {
		line("# Tables refer to each other by columns that take no NULL: push it %s, and PostgreSQL runs no triggers.", dataset.WithoutChecks)
	}
	line("version: 1")
	line("tables:")
	for _, t := range s.tables {
		w := s.writers[t.Table]
		if w == nil {
			line("  # %s", comment(fmt.Sprintf("%s is left out: %s", quoted(t.Table), loader.Explain(s.left[t.Table]))))
			continue
		}
		out.WriteString(indented("  ", w.remarks()))
		if w.unknownRows {
			line("  # The server does not know how many rows it has.")
		}
		line("  %s:", dotted(w.label))
		if w.most < fewRows {
			line("    most: %d  # whatever --rows and --times say: its keys have room for no more", w.most)
		}
		out.WriteString(indented("    ", w.body(w.Rows)))
	}
	return out.String()
}

func (s *schema) contents() string {
	for _, w := range s.writers {
		if w.hasShapes() {
			return ""
		}
	}
	return " No value of its rows is in this file."
}

func indented(by, lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		out.WriteString(by + line)
	}
	return out.String()
}

// parent is a column of a table of the same file.
type parent struct {
	*writer
	column string
}

func (p *parent) short() string { return dotted(p.label + "." + p.column) }

// rows is the number of the parent's rows as another number.
func (p *parent) rows() string { return quoted("${" + p.label + ".rows}") }

// draws lists the generators that refer to any row of the parent. Where the parent leads back to the table, one of the
// columns that may be NULL will be.
func (p *parent) draws(c *column) []string {
	if c.with != nil && c.with.omitted == "" {
		return c.together()
	}
	if c.unchecked {
		return []string{"ref: {of: " + p.short() + ", unchecked: true}"}
	}
	text := "ref: " + p.short()
	if p.leadsTo(c, map[*writer]bool{}) {
		text += c.someNulls()
	}
	return []string{text}
}

// leadsTo reports whether the table is that of a column, or refers to it.
func (p *parent) leadsTo(c *column, seen map[*writer]bool) bool {
	if seen[p.writer] {
		return false
	}
	seen[p.writer] = true
	for _, mine := range p.columns {
		if mine == c || mine.parent != nil && !mine.unchecked && mine.parent.leadsTo(c, seen) {
			return true
		}
	}
	return false
}

// parsed returns why a file of one table may not have the columns, with what they refer to.
func (w *writer) parsed(text string, all []entry) error {
	if w.label == "" {
		_, err := dataset.ParseSpec("file", []byte(text), nil)
		return err
	}

	found := stubs{}
	for _, e := range all {
		if err := found.add(e.parent); err != nil {
			return err
		}
	}

	_, body, _ := strings.Cut(text, "name: t\n")
	file := fmt.Sprintf("version: 1\ntables:\n  \"?\":\n    rows: %d\n", triedRows) + indented("    ", body)
	for of, columns := range found {
		rows, lines := int64(triedRows), ""
		for _, line := range columns {
			rows = max(rows, turn(line))
			lines += "    " + line + "\n"
		}
		file += fmt.Sprintf("  %s:\n    rows: %d\n", dotted(of.label), rows) +
			"    key: [terapush_row]\n    columns:\n      terapush_row: {type: bigint, sequence: {start: 1}}\n" + lines
	}
	_, err := dataset.ParseTables("file", []byte(file), nil, dataset.Scale{})
	return err
}

// triedRows is how many rows a table has whose columns are tried, so few that every type has values for them.
const triedRows = 10

var turns = regexp.MustCompile(`(?:every|cycle): (\d+)`)

// turn is after how many rows a column of a pair goes on or starts over; 0 if it does not, or if that is a parent's
// number of rows.
func turn(generator string) int64 {
	m := turns.FindStringSubmatch(generator)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n
}

// stubs are the columns that others refer to, as lines of a file, by table.
type stubs map[*writer]map[string]string

// add adds a column, and the key that it is a part of: the slow column of a key of two has the rows of the fast one's
// parent.
func (all stubs) add(p *parent) error {
	if p == nil {
		return nil
	}
	of := p.find(p.column)
	if of == nil || !of.derived {
		return fmt.Errorf("column %s of table %s is no key that a reference can be computed from", p.column, p.label)
	}
	if all[p.writer][of.Name] != "" {
		return nil
	}
	if all[p.writer] == nil {
		all[p.writer] = map[string]string{}
	}
	all[p.writer][of.Name] = entry{of, of.generator}.line()

	if err := all.add(of.parent); err != nil {
		return err
	}
	for _, name := range p.key {
		if err := all.add(p.find(name).parent); err != nil {
			return err
		}
	}
	return nil
}
