package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/terapush/terapush/internal/report"
)

// isSingle reports whether a record holds one run instead of a sweep.
func isSingle(r Record) bool {
	return r.Head.Name == "" && len(r.Head.Parts) == 1 && len(r.Head.Parts[0].Axes) == 0 &&
		len(r.Entries) == 1 && r.Entries[0].Report != nil
}

// difference is one thing in which runs may differ.
type difference struct {
	axis   string
	of     func(*report.Report) any
	chosen bool // by the user: it becomes an axis even if another axis explains it
}

// differences lists what runs may differ in, chosen ones first.
func differences(runs []Record) []difference {
	all := []difference{
		{axisTarget, func(r *report.Report) any { return r.Target.URL }, true},
		{"method", func(r *report.Report) any { return r.Plan.Method }, true},
		{"workers", func(r *report.Report) any { return r.Plan.Workers }, true},
		{"batch-rows", func(r *report.Report) any { return r.Plan.BatchRows }, true},
	}
	for _, name := range namesIn(runs, func(r *report.Report) map[string]string { return r.Plan.Options }) {
		option := func(r *report.Report) any { return cmp.Or(r.Plan.Options[name], "not given") }
		all = append(all, difference{name, option, true})
	}
	all = append(all,
		difference{"format", func(r *report.Report) any { return r.Plan.Format }, false},
		difference{"dataset", func(r *report.Report) any { return r.Plan.Dataset }, false},
		difference{"delivery", func(r *report.Report) any { return r.Plan.Delivery }, false},
		difference{"via", func(r *report.Report) any { return r.Target.Via }, false},
		difference{"server", func(r *report.Report) any { return r.Target.Server }, false},
		difference{"commit-batches", func(r *report.Report) any { return r.Plan.GroupBatches }, false},
		difference{"batch-bytes", func(r *report.Report) any { return r.Plan.BatchBytes }, false},
		difference{"max-rate", func(r *report.Report) any { return r.Plan.MaxRate }, false},
		difference{"rows", func(r *report.Report) any { return r.Plan.Rows }, false},
		difference{"table", func(r *report.Report) any { return r.Target.Table }, false},
		difference{"cores", func(r *report.Report) any { return r.Client.Cores }, false})
	for _, name := range namesIn(runs, func(r *report.Report) map[string]string { return r.Target.Settings }) {
		setting := func(r *report.Report) any { return r.Target.Settings[name] }
		all = append(all, difference{"set." + name, setting, false})
	}
	return all
}

// namesIn returns the keys of one map of all runs, sorted.
func namesIn(runs []Record, of func(*report.Report) map[string]string) []string {
	names := map[string]bool{}
	for _, run := range runs {
		for name := range of(run.Entries[0].Report) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// tableOfRuns makes a table of single runs. Runs that differ in nothing are repeats of one case.
func tableOfRuns(runs []Record) Table {
	t := Table{Title: "Single runs", Axes: []Axis{}, Points: []Point{}}
	if len(runs) == 1 {
		t.Title, t.run = "One run", runs[0].Entries[0].Report
	}
	axes := axesOf(runs)
	cells := cellsOf(runs, axes)
	for _, d := range axes {
		t.Axes = append(t.Axes, Axis{Name: d.axis, Values: valuesIn(cells, d.axis)})
	}
	slices.SortStableFunc(cells, func(a, b []Entry) int {
		order := 0
		for _, axis := range t.Axes { // the last axis fastest
			index := func(cell []Entry) int { return slices.Index(axis.Values, cell[0].Settings.Value(axis.Name)) }
			order = cmp.Or(order, cmp.Compare(index(a), index(b)))
		}
		return order
	})
	for _, cell := range cells {
		t.Points = append(t.Points, newPoint(cell[0].Settings, cell))
	}
	var from group
	for _, run := range runs {
		from = append(from, piece{head: run.Head, part: run.Head.Parts[0]})
	}
	t.conclude(from)
	return t
}

// cellsOf groups the runs that are equal in the given differences, which become their settings.
func cellsOf(runs []Record, by []difference) (cells [][]Entry) {
	for _, run := range runs {
		e := run.Entries[0]
		e.Settings = make(Settings, len(by))
		for i, d := range by {
			e.Settings[i] = Setting{Axis: d.axis, Value: fmt.Sprint(d.of(e.Report))}
		}
		i := slices.IndexFunc(cells, func(cell []Entry) bool { return slices.Equal(cell[0].Settings, e.Settings) })
		if i < 0 {
			i = len(cells)
			cells = append(cells, nil)
		}
		e.Repeat = len(cells[i])
		cells[i] = append(cells[i], e)
	}
	return cells
}

// axesOf returns the differences that become axes: those that the user chose, and those that tell more runs apart.
func axesOf(runs []Record) []difference {
	var axes []difference
	for _, d := range differences(runs) {
		more := append(slices.Clone(axes), d)
		if d.chosen && len(cellsOf(runs, more[len(axes):])) > 1 || len(cellsOf(runs, more)) > len(cellsOf(runs, axes)) {
			axes = more
		}
	}
	return axes
}

// valuesIn returns the values of an axis, sorted if they have an order.
func valuesIn(cells [][]Entry, axis string) (values []string) {
	for _, cell := range cells {
		values = append(values, cell[0].Settings.Value(axis))
	}
	values = distinct(values)
	if (Axis{Values: values}).ordered() {
		slices.SortFunc(values, CompareValues)
	}
	return values
}
