package results

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// Table is one part of a sweep, or several single runs beside each other. Its lists are never nil.
type Table struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	Scale  string  `json:"scale"`
	Axes   []Axis  `json:"axes"`   // all of the part; one value means that it does not vary
	Points []Point `json:"points"` // one for each cell, in the cells' order
	Facts  *Facts  `json:"facts,omitempty"`
	// Inputs are what all points share: server, settings that decide durability, dataset, sizes, machine, version.
	Inputs []Input `json:"inputs"`
	Knees  []Knee  `json:"knees"`
	// Best is the point with the highest median rate, and Smallest the one with the smallest settings within Near of
	// it: indexes into Points, -1 when none was measured.
	Best     int      `json:"best"`
	Smallest int      `json:"smallest"`
	Warnings []string `json:"warnings"`

	allInputs []Input // those that differ included
	planned   string  // the axis along which the plan wants knees; "" is none
}

// Axes that tables themselves know of.
const (
	axisTarget = "target"
	axisRecord = "record" // of records side by side
)

// Tables makes a table of every part of every record. Parts of one name and one set of axes that come from several
// records stand in one table, side by side along the axis record. Records of single runs, as Read makes them of a
// report, become one table along whatever differs between them. The same records give the same tables.
func Tables(records []Record) []Table {
	var groups []group
	var runs []Record
	for i, r := range records {
		if isSingle(r) {
			runs = append(runs, r)
			continue
		}
		entries := make([][]Entry, len(r.Head.Parts))
		for _, e := range r.Latest() {
			if !e.WarmUp {
				entries[e.Part] = append(entries[e.Part], e)
			}
		}
		for n, part := range r.Head.Parts {
			groups = join(groups, piece{file: fileName(r, i, records), head: r.Head, part: part, entries: entries[n]})
		}
	}
	tables := make([]Table, 0, len(groups)+1)
	for _, g := range groups {
		tables = append(tables, g.table())
	}
	if len(runs) > 0 {
		tables = append(tables, tableOfRuns(runs))
	}
	return tables
}

// piece is one part of one record.
type piece struct {
	file    string
	head    Head
	part    Part
	entries []Entry // that count, one for each push, without warm-ups
}

// group is the pieces that stand in one table.
type group []piece

func join(groups []group, p piece) []group {
	for i, g := range groups {
		if g[0].head.Name == p.head.Name && g[0].part.Name == p.part.Name && slices.Equal(g[0].axisNames(), p.axisNames()) {
			groups[i] = append(g, p)
			return groups
		}
	}
	return append(groups, group{p})
}

func (p piece) axisNames() []string {
	var names []string
	for _, a := range p.part.Axes {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}

// fileName is how a record is called beside others: by its file's name, or where two have the same by its number too.
func fileName(r Record, index int, all []Record) string {
	name := filepath.Base(r.File)
	if r.File == "" {
		return fmt.Sprintf("record %d", index+1)
	}
	for i, other := range all {
		if i != index && filepath.Base(other.File) == name {
			return fmt.Sprintf("%s (%d)", name, index+1)
		}
	}
	return name
}

func (g group) table() Table {
	head, part := g[0].head, g[0].part
	t := Table{
		Name: joined("/", head.Name, part.Name), Title: joined(": ", head.Title, part.Title), Scale: head.Scale,
		Axes: append([]Axis{}, part.Axes...), Points: []Point{}, Facts: part.Facts,
	}
	if len(g) > 1 {
		t.Axes = g.axes()
	}
	for _, p := range g {
		for _, point := range p.points() {
			point.Fact = p.part.fact(point.Settings)
			if len(g) > 1 {
				point.Settings = append(Settings{{Axis: axisRecord, Value: p.file}}, point.Settings...)
			}
			t.Points = append(t.Points, point)
		}
	}
	t.conclude(g)
	return t
}

// axes returns the axes of records side by side: which record it was, and every value that any of them has.
func (g group) axes() []Axis {
	axes := []Axis{{Name: axisRecord}}
	for _, p := range g {
		axes[0].Values = append(axes[0].Values, p.file)
		for _, a := range p.part.Axes {
			i := slices.IndexFunc(axes, func(had Axis) bool { return had.Name == a.Name })
			if i < 0 {
				i = len(axes)
				axes = append(axes, Axis{Name: a.Name})
			}
			for _, v := range a.Values {
				if !slices.Contains(axes[i].Values, v) {
					axes[i].Values = append(axes[i].Values, v)
				}
			}
		}
	}
	return axes
}

// points returns the part's cells in their order, those that nothing is known of included if they were to be pushed.
func (p piece) points() []Point {
	cells := map[int][]Entry{}
	n := 0
	for _, e := range p.entries {
		cells[e.Cell] = append(cells[e.Cell], e)
		n = max(n, e.Cell+1)
	}
	grid := 1
	for _, a := range p.part.Axes {
		grid *= len(a.Values)
	}
	whole := grid == p.part.Cells && !p.part.Sparse
	if whole {
		n = max(n, grid)
	}
	points := make([]Point, 0, n)
	for cell := range n {
		switch entries, known := cells[cell]; {
		case known:
			points = append(points, newPoint(entries[0].Settings, entries))
		case whole:
			points = append(points, newPoint(p.part.settings(cell), nil))
		}
	}
	return points
}

// settings returns a cell's place in the grid of all axes, the last axis fastest.
func (p Part) settings(cell int) Settings {
	settings := make(Settings, len(p.Axes))
	for i, a := range slices.Backward(p.Axes) {
		settings[i] = Setting{Axis: a.Name, Value: a.Values[cell%len(a.Values)]}
		cell /= len(a.Values)
	}
	return settings
}

// conclude finds out what follows from the points, which came from some pieces.
func (t *Table) conclude(from group) {
	t.allInputs = inputsOf(t.reports(), from)
	t.Inputs = shared(t.allInputs)
	for _, p := range from {
		t.planned = cmp.Or(t.planned, p.part.Knee)
	}
	t.Knees = t.findKnees()
	t.Best, t.Smallest = t.findBest()
	t.Warnings = t.findWarnings()
}

// measured returns the indexes of the points that were measured.
func (t Table) measured() (points []int) {
	for i, p := range t.Points {
		if p.measured() {
			points = append(points, i)
		}
	}
	return points
}

// varying returns the axes of several values.
func (t Table) varying() (found []Axis) {
	for _, a := range t.Axes {
		if len(a.Values) > 1 {
			found = append(found, a)
		}
	}
	return found
}

// fixed returns the settings that all cells share because their axis has one value.
func (t Table) fixed() (found []Input) {
	for _, a := range t.Axes {
		if len(a.Values) == 1 {
			found = append(found, Input{a.Name, a.Values[0]})
		}
	}
	return found
}

// input returns what all points share of a name, "" where they differ or do not have it.
func (t Table) input(name string) string {
	for _, in := range t.Inputs {
		if in.Name == name {
			return in.Value
		}
	}
	return ""
}

// reports returns those of all pushes that count.
func (t Table) reports() (all []*report.Report) {
	for _, p := range t.Points {
		all = append(all, p.Pushes...)
	}
	return all
}

// joined puts texts together with another between them, and leaves out what is empty.
func joined(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}
