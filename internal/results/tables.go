package results

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Axes that analysis itself knows of.
const (
	axisTarget = "target"
	axisRecord = "record" // of records side by side
)

// Tables makes a table of every part of every record. Parts of one name and one set of axes that come from several
// records stand in one table, side by side along the axis record. Records of single runs, as Read makes them of a
// report, become one table along whatever differs between them.
func Tables(records []Record) []Table {
	var groups []group
	for i, r := range records {
		if isSingle(r) {
			continue
		}
		name := fileName(r, i, records)
		for n, part := range r.Head.Parts {
			groups = join(groups, piece{file: name, head: r.Head, part: part, entries: entriesOf(r, n)})
		}
	}
	tables := make([]Table, 0, len(groups)+1)
	for _, g := range groups {
		tables = append(tables, g.table())
	}
	if runs := singles(records); len(runs) > 0 {
		tables = append(tables, tableOfRuns(runs))
	}
	return tables
}

// piece is one part of one record.
type piece struct {
	file    string
	head    Head
	part    Part
	entries []Entry // warm-ups left out
}

// group is what stands in one table.
type group []piece

func join(groups []group, p piece) []group {
	for i, g := range groups {
		if g[0].head.Name == p.head.Name && g[0].part.Name == p.part.Name && slices.Equal(axisNames(g[0].part), axisNames(p.part)) {
			groups[i] = append(g, p)
			return groups
		}
	}
	return append(groups, group{p})
}

func axisNames(p Part) []string {
	names := make([]string, len(p.Axes))
	for i, a := range p.Axes {
		names[i] = a.Name
	}
	slices.Sort(names)
	return names
}

func entriesOf(r Record, part int) []Entry {
	var found []Entry
	for _, e := range r.Entries {
		if e.Part == part && !e.WarmUp {
			found = append(found, e)
		}
	}
	return found
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
	first := g[0]
	t := Table{
		Name: Joined("/", first.head.Name, first.part.Name), Title: Joined(": ", first.head.Title, first.part.Title),
		Scale: first.head.Scale, Axes: append([]Axis{}, first.part.Axes...), Points: []Point{}, Facts: first.part.Facts,
	}
	if len(g) > 1 {
		t.Axes = unite(g)
	}
	for _, p := range g {
		points := p.points()
		addFacts(points, p.part)
		if len(g) > 1 {
			for i := range points {
				points[i].Settings = append(Settings{{Axis: axisRecord, Value: p.file}}, points[i].Settings...)
			}
		}
		t.Points = append(t.Points, points...)
	}
	t.finish(g)
	return t
}

// unite gives the axes of records side by side: which record it was, and every value that any of them has.
func unite(g group) []Axis {
	axes := []Axis{{Name: axisRecord}}
	for _, p := range g {
		axes[0].Values = append(axes[0].Values, p.file)
		for _, a := range p.part.Axes {
			i := slices.IndexFunc(axes, func(have Axis) bool { return have.Name == a.Name })
			if i < 0 {
				axes = append(axes, Axis{Name: a.Name, Values: slices.Clone(a.Values)})
				continue
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

// points are the part's cells in their order, those that nothing is known of included if they were to be pushed.
func (p piece) points() []Point {
	cells := map[int][]Entry{}
	for _, e := range p.entries {
		cells[e.Cell] = append(cells[e.Cell], e)
	}
	n := 0
	for cell := range cells {
		n = max(n, cell+1)
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
			points = append(points, point(entries[0].Settings, entries))
		case whole:
			points = append(points, point(settingsOf(cell, p.part.Axes), nil))
		}
	}
	return points
}

// settingsOf is a cell's place in the grid of all axes, the last axis fastest.
func settingsOf(cell int, axes []Axis) Settings {
	settings := make(Settings, len(axes))
	for i := len(axes) - 1; i >= 0; i-- {
		n := len(axes[i].Values)
		settings[i] = Setting{Axis: axes[i].Name, Value: axes[i].Values[cell%n]}
		cell /= n
	}
	return settings
}

// finish draws the conclusions from the points, which came from some pieces.
func (t *Table) finish(from group) {
	t.allInputs = inputsOf(t.reports(), from)
	t.Inputs = shared(t.allInputs)
	for _, p := range from {
		t.planned = cmp.Or(t.planned, p.part.Knee)
	}
	t.Knees = knees(t.planned, t.Axes, t.Points)
	t.Best, t.Smallest = best(t.Axes, t.Points)
	t.Warnings = warnings(*t)
}

// Joined puts texts together with another between them, and leaves out what is empty.
func Joined(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}
