package results

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
)

// Table is one part of a sweep, or several single runs. Its lists are never nil.
type Table struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	Scale  string  `json:"scale"`
	Axes   []Axis  `json:"axes"`   // of the part, those of one value included
	Points []Point `json:"points"` // one for each case, in the cases' order
	Facts  *Facts  `json:"facts,omitempty"`
	// Inputs are those with the same value in all points: server, durability, dataset, sizes, machine, version.
	Inputs []Input `json:"inputs"`
	Knees  []Knee  `json:"knees"`
	// Best is the index of the point with the highest median rate, Smallest of the one with the smallest settings
	// within Near of it; -1 if none was measured.
	Best     int `json:"best"`
	Smallest int `json:"smallest"`
	// Thresholds are those of the plan with the cases that miss them.
	Thresholds []Judged `json:"thresholds"`
	Warnings   []string `json:"warnings"`

	allInputs []Input        // including those that differ
	planned   string         // the knee axis of the plan; "" is none
	precision float64        // of the plan; 0 is none
	drift     string         // of the machine meanwhile, in a sentence; "" is none
	run       *report.Report // of a table of one run, however it ended
}

// Axes that tables treat in their own way.
const (
	axisTarget = "target"
	axisRecord = "record" // of records side by side
)

// Tables makes a table of every part of every record. Parts of several records with the same name and axes share a
// table, side by side along the axis record. Single runs share one along whatever differs between them. The same
// records give the same tables.
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

// TablesOfRuns makes a table of each single run. The tables of one push have other columns and rows, so their rates say
// nothing about each other.
func TablesOfRuns(runs []Record) []Table {
	var tables []Table
	for _, r := range runs {
		tables = append(tables, tableOfRuns([]Record{r}))
	}
	return tables
}

// piece is one part of one record.
type piece struct {
	file    string
	head    Head
	part    Part
	entries []Entry // those that count, without warm-ups
}

// group is the pieces that share a table.
type group []piece

func join(groups []group, p piece) []group {
	axes := func(p piece) []string { return slices.Sorted(slices.Values(axisNames(p.part.Axes))) }
	for i, g := range groups {
		if g[0].head.Name == p.head.Name && g[0].part.Name == p.part.Name && slices.Equal(axes(g[0]), axes(p)) {
			groups[i] = append(g, p)
			return groups
		}
	}
	return append(groups, group{p})
}

// fileName names a record by its file, and by its number too if another file has the same name.
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
		Name: units.Join("/", head.Name, part.Name), Title: units.Join(": ", head.Title, part.Title), Scale: head.Scale,
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

// axes returns the axes of records side by side: the record, and every value that any of them has.
func (g group) axes() []Axis {
	axes := []Axis{{Name: axisRecord}}
	for _, p := range g {
		axes[0].Values = append(axes[0].Values, p.file)
		for _, a := range p.part.Axes {
			i := slices.IndexFunc(axes, func(had Axis) bool { return had.Name == a.Name })
			if i < 0 {
				i = len(axes)
				axes = append(axes, Axis{Name: a.Name, Settings: a.Settings})
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

// points returns the cases of the part in order. Cases without entries are included unless the part is sparse or the
// plan leaves them out.
func (p piece) points() (points []Point) {
	cells := map[int][]Entry{}
	for _, e := range p.entries {
		cells[e.Cell] = append(cells[e.Cell], e)
	}
	for cell := range p.part.Cells {
		entries, known := cells[cell]
		_, excluded := slices.BinarySearch(p.part.Excluded, cell)
		switch {
		case known:
			points = append(points, newPoint(entries[0].Settings, entries))
		case !p.part.Sparse && !excluded:
			points = append(points, newPoint(Combination(p.part.Axes, cell), nil))
		}
	}
	return points
}

// conclude derives the inputs, knees, best cases and warnings from the points.
func (t *Table) conclude(from group) {
	t.allInputs = inputsOf(t.reports(), from)
	t.Inputs = shared(t.allInputs)
	var thresholds []Threshold
	for _, p := range from {
		t.planned = cmp.Or(t.planned, p.part.Knee)
		t.precision = cmp.Or(t.precision, p.head.Precision)
		t.drift = cmp.Or(t.drift, driftOf(p.entries, cmp.Or(p.head.Precision, margin)))
		thresholds = append(thresholds, p.part.Thresholds...)
	}
	t.Knees = t.findKnees()
	t.Best, t.Smallest = t.findBest()
	t.Thresholds = t.judge(distinct(thresholds))
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
func (t Table) varying() []Axis {
	return those(t.Axes, func(a Axis) bool { return len(a.Values) > 1 })
}

// fixed returns the axes of one value as inputs.
func (t Table) fixed() (inputs []Input) {
	for _, a := range t.Axes {
		if len(a.Values) == 1 {
			inputs = append(inputs, Input{a.Name, a.Values[0]})
		}
	}
	return inputs
}

// input returns the value of a shared input, "" without one.
func (t Table) input(name string) string { return strings.Join(valuesOf(t.Inputs, name), "") }

// reports returns the reports of all pushes that count.
func (t Table) reports() (all []*report.Report) {
	for _, p := range t.Points {
		all = append(all, p.Pushes...)
	}
	return all
}
