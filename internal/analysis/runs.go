package analysis

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/report"
)

// IsSingle tells whether a record is one run's: no plan, no axes, one entry.
func IsSingle(r record.Record) bool {
	return r.Head.Name == "" && len(r.Head.Parts) == 1 && len(r.Head.Parts[0].Axes) == 0 && len(r.Entries) == 1 && r.Entries[0].Report != nil
}

func singles(records []record.Record) []record.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r record.Record) bool { return !IsSingle(r) })
}

// difference is one thing in which runs may differ.
type difference struct {
	axis string
	of   func(*report.Report) string
}

// plain are the differences that make an axis even if another axis explains them: what one chooses.
func plain() []difference {
	return []difference{
		{axisTarget, func(r *report.Report) string { return r.Target.URL }},
		{"method", func(r *report.Report) string { return r.Plan.Method }},
		{"workers", func(r *report.Report) string { return strconv.Itoa(r.Plan.Workers) }},
		{"batch-rows", func(r *report.Report) string { return strconv.FormatInt(r.Plan.BatchRows, 10) }},
	}
}

// hidden are the differences that make an axis only where runs would be taken for the same without it.
func hidden(runs []record.Record) []difference {
	all := []difference{
		{"format", func(r *report.Report) string { return r.Plan.Format }},
		{"dataset", func(r *report.Report) string { return r.Plan.Dataset }},
		{"delivery", func(r *report.Report) string { return r.Plan.Delivery }},
		{"via", func(r *report.Report) string { return r.Target.Via }},
		{"server", func(r *report.Report) string { return r.Target.Server }},
		{"commit-batches", func(r *report.Report) string { return strconv.FormatInt(r.Plan.GroupBatches, 10) }},
		{"batch-bytes", func(r *report.Report) string { return strconv.FormatInt(r.Plan.BatchBytes, 10) }},
		{"max-rate", func(r *report.Report) string { return strconv.FormatInt(r.Plan.MaxRate, 10) }},
		{"rows", func(r *report.Report) string { return strconv.FormatInt(r.Plan.Rows, 10) }},
		{"table", func(r *report.Report) string { return r.Target.Table }},
		{"cores", func(r *report.Report) string { return strconv.Itoa(r.Client.Cores) }},
	}
	names := map[string]bool{}
	for _, r := range runs {
		for name := range r.Entries[0].Report.Target.Settings {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, difference{"set." + name, func(r *report.Report) string { return r.Target.Settings[name] }})
	}
	return all
}

// tableOfRuns puts runs beside each other. Runs that differ in nothing are repeats of one cell.
func tableOfRuns(runs []record.Record) Table {
	axes := axesOf(runs)
	var cells []group
	for _, run := range runs {
		settings := make([]record.Setting, len(axes))
		for i, a := range axes {
			settings[i] = record.Setting{Axis: a.axis, Value: a.of(run.Entries[0].Report)}
		}
		e := run.Entries[0]
		e.Settings = settings
		i := slices.IndexFunc(cells, func(g group) bool { return slices.Equal(g[0].entries[0].Settings, settings) })
		if i < 0 {
			i = len(cells)
			cells = append(cells, nil)
		}
		e.Repeat = len(cells[i])
		cells[i] = append(cells[i], piece{file: run.File, head: run.Head, part: run.Head.Parts[0], entries: []record.Entry{e}})
	}
	t := Table{Title: "Single runs", Axes: []record.Axis{}, Points: []Point{}}
	if len(runs) == 1 {
		t.Title = "One run"
	}
	for _, a := range axes {
		t.Axes = append(t.Axes, record.Axis{Name: a.axis, Values: valuesIn(cells, a.axis)})
	}
	slices.SortStableFunc(cells, func(a, b group) int { return order(t.Axes, a[0].entries[0].Settings, b[0].entries[0].Settings) })
	var sources []source
	points := make([]Point, len(cells)) // in its place before anybody points into it
	for i, g := range cells {
		var entries []record.Entry
		for _, p := range g {
			entries = append(entries, p.entries...)
		}
		points[i] = point(entries[0].Settings, entries)
		for j := range g {
			sources = append(sources, source{point: &points[i], piece: &g[j]})
		}
	}
	t.Points = points
	t.finish(sources)
	return t
}

// axesOf are the differences by which all runs that differ are told apart.
func axesOf(runs []record.Record) []difference {
	var axes []difference
	told := func() int {
		seen := map[string]bool{}
		for _, r := range runs {
			var settings []record.Setting
			for _, a := range axes {
				settings = append(settings, record.Setting{Axis: a.axis, Value: a.of(r.Entries[0].Report)})
			}
			seen[key(settings)] = true
		}
		return len(seen)
	}
	for _, d := range plain() {
		if varies(runs, d) {
			axes = append(axes, d)
		}
	}
	for _, d := range hidden(runs) {
		before := told()
		if axes = append(axes, d); told() == before {
			axes = axes[:len(axes)-1]
		}
	}
	return axes
}

func varies(runs []record.Record, d difference) bool {
	return slices.ContainsFunc(runs, func(r record.Record) bool { return d.of(r.Entries[0].Report) != d.of(runs[0].Entries[0].Report) })
}

// valuesIn are an axis's values: by size if they have one, else as they come.
func valuesIn(cells []group, axis string) []string {
	var values []string
	for _, g := range cells {
		if v := valueOf(g[0].entries[0].Settings, axis); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if Ordered(record.Axis{Values: values}) {
		slices.SortFunc(values, compareValues)
	}
	return values
}

// order compares cells by their axes' values, the last axis fastest.
func order(axes []record.Axis, a, b []record.Setting) int {
	for _, axis := range axes {
		if c := cmp.Compare(slices.Index(axis.Values, valueOf(a, axis.Name)), slices.Index(axis.Values, valueOf(b, axis.Name))); c != 0 {
			return c
		}
	}
	return 0
}
