package results

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/terapush/terapush/internal/report"
)

// isSingle tells whether a record is one run's: no plan, no axes, one entry.
func isSingle(r Record) bool {
	return r.Head.Name == "" && len(r.Head.Parts) == 1 && len(r.Head.Parts[0].Axes) == 0 && len(r.Entries) == 1 && r.Entries[0].Report != nil
}

func singles(records []Record) []Record {
	return slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return !isSingle(r) })
}

// difference is one thing in which runs may differ.
type difference struct {
	axis string
	of   func(*report.Report) string
}

// notGiven stands for an option that a run was not given, or that its method does not have.
const notGiven = "not given"

// chosen are the differences that make an axis even if another axis explains them: what one chooses.
func chosen(runs []Record) []difference {
	all := []difference{
		{axisTarget, func(r *report.Report) string { return r.Target.URL }},
		{"method", func(r *report.Report) string { return r.Plan.Method }},
		{"workers", func(r *report.Report) string { return strconv.Itoa(r.Plan.Workers) }},
		{"batch-rows", func(r *report.Report) string { return strconv.FormatInt(r.Plan.BatchRows, 10) }},
	}
	for _, name := range namesOf(runs, func(r *report.Report) map[string]string { return r.Plan.Options }) {
		all = append(all, difference{name, func(r *report.Report) string { return cmp.Or(r.Plan.Options[name], notGiven) }})
	}
	return all
}

// hidden are the differences that make an axis only where runs would be taken for the same without it.
func hidden(runs []Record) []difference {
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
	for _, name := range namesOf(runs, func(r *report.Report) map[string]string { return r.Target.Settings }) {
		all = append(all, difference{"set." + name, func(r *report.Report) string { return r.Target.Settings[name] }})
	}
	return all
}

// namesOf are the names in one map of all runs, sorted.
func namesOf(runs []Record, of func(*report.Report) map[string]string) []string {
	names := map[string]bool{}
	for _, run := range runs {
		for name := range of(run.Entries[0].Report) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// repeats are runs that differ in nothing.
type repeats struct {
	settings Settings
	entries  []Entry
}

// tableOfRuns puts runs beside each other. Runs that differ in nothing are repeats of one cell.
func tableOfRuns(runs []Record) Table {
	t := Table{Title: "Single runs", Axes: []Axis{}, Points: []Point{}}
	if len(runs) == 1 {
		t.Title = "One run"
	}
	axes := axesOf(runs)
	cells := cellsOf(runs, axes)
	for _, a := range axes {
		t.Axes = append(t.Axes, Axis{Name: a.axis, Values: valuesIn(cells, a.axis)})
	}
	slices.SortStableFunc(cells, func(a, b repeats) int { return order(t.Axes, a.settings, b.settings) })
	for _, c := range cells {
		t.Points = append(t.Points, point(c.settings, c.entries))
	}
	var from group
	for _, run := range runs {
		from = append(from, piece{head: run.Head, part: run.Head.Parts[0]})
	}
	t.finish(from)
	return t
}

// cellsOf puts the runs together that some axes do not tell apart.
func cellsOf(runs []Record, axes []difference) []repeats {
	var cells []repeats
	for _, run := range runs {
		e := run.Entries[0]
		e.Settings = make(Settings, len(axes))
		for i, a := range axes {
			e.Settings[i] = Setting{Axis: a.axis, Value: a.of(e.Report)}
		}
		i := slices.IndexFunc(cells, func(c repeats) bool { return slices.Equal(c.settings, Settings(e.Settings)) })
		if i < 0 {
			i = len(cells)
			cells = append(cells, repeats{settings: e.Settings})
		}
		e.Repeat = len(cells[i].entries)
		cells[i].entries = append(cells[i].entries, e)
	}
	return cells
}

// axesOf are the differences by which all runs that differ are told apart.
func axesOf(runs []Record) []difference {
	var axes []difference
	for _, d := range chosen(runs) {
		if len(cellsOf(runs, []difference{d})) > 1 {
			axes = append(axes, d)
		}
	}
	for _, d := range hidden(runs) {
		more := append(slices.Clone(axes), d)
		if len(cellsOf(runs, more)) > len(cellsOf(runs, axes)) {
			axes = more
		}
	}
	return axes
}

// valuesIn are an axis's values: by size if they have one, else as they come.
func valuesIn(cells []repeats, axis string) []string {
	var values []string
	for _, c := range cells {
		if v := c.settings.Value(axis); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if Ordered(Axis{Values: values}) {
		slices.SortFunc(values, compareValues)
	}
	return values
}

// order compares cells by their axes' values, the last axis fastest.
func order(axes []Axis, a, b Settings) int {
	for _, axis := range axes {
		if c := cmp.Compare(slices.Index(axis.Values, a.Value(axis.Name)), slices.Index(axis.Values, b.Value(axis.Name))); c != 0 {
			return c
		}
	}
	return 0
}
