package results

import (
	"cmp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/results/chart"
)

// maxLines is how many lines a chart can have that a reader can tell apart.
const maxLines = 7

// folded says which of the other axes make the lines of a chart along one axis, and which are folded into their best.
type folded struct {
	axis   Axis
	names  []string // a line for each combination of these
	bestOf []string
}

// fold gives lines to as many axes as there is room for, those of words first: a method is what a reader looks for.
func fold(t Table, axis Axis) folded {
	f := folded{axis: axis}
	var rest []Axis
	for _, a := range varying(t) {
		if a.Name != axis.Name {
			rest = append(rest, a)
		}
	}
	slices.SortStableFunc(rest, func(a, b Axis) int {
		return cmp.Compare(map[bool]int{true: 1}[Ordered(a)], map[bool]int{true: 1}[Ordered(b)])
	})
	lines := 1
	for n, a := range rest {
		if n == 0 || lines*len(a.Values) <= maxLines {
			lines *= len(a.Values)
			f.names = append(f.names, a.Name)
		} else {
			f.bestOf = append(f.bestOf, a.Name)
		}
	}
	return f
}

// series are the lines, the published ones behind those measured here.
func (f folded) series(t Table) []chart.Series {
	var here, there seriesByName
	for _, p := range t.Points {
		x, ok := Amount(p.Settings.Value(f.axis.Name))
		if s := p.RowsPerSecond; ok && s.N > 0 {
			point := chart.Point{X: x, Y: s.Median, Marked: len(f.bestOf) == 0 && isKneeAlong(t, p, f.axis.Name)}
			if s.N > 1 {
				point.Low, point.High = s.Low, s.High
			}
			here.add(f.name(t, p.Settings.Value), point)
		}
	}
	if t.Facts != nil {
		for _, fact := range t.Facts.Points {
			x, ok := Amount(fact.Value(f.axis.Name))
			if ok && fact.RowsPerSecond > 0 {
				there.add(f.name(t, fact.Value), chart.Point{X: x, Y: fact.RowsPerSecond})
			}
		}
	}
	for i := range there.series {
		there.series[i].Dashed = true
	}
	return append(here.series, there.series...)
}

func (f folded) name(t Table, value func(axis string) string) string {
	var words []string
	for _, a := range varying(t) {
		switch {
		case !slices.Contains(f.names, a.Name) || value(a.Name) == "":
		case Ordered(a):
			words = append(words, a.Name+" "+value(a.Name))
		default:
			words = append(words, value(a.Name))
		}
	}
	return strings.Join(words, ", ")
}

// seriesByName are series by their names, with one point for each place: the highest.
type seriesByName struct{ series []chart.Series }

func (l *seriesByName) add(name string, p chart.Point) {
	i := slices.IndexFunc(l.series, func(s chart.Series) bool { return s.Name == name })
	if i < 0 {
		l.series = append(l.series, chart.Series{Name: name, Points: []chart.Point{p}})
		return
	}
	points := l.series[i].Points
	n := slices.IndexFunc(points, func(had chart.Point) bool { return had.X == p.X })
	switch {
	case n < 0:
		l.series[i].Points = append(points, p)
	case p.Y > points[n].Y:
		points[n] = p
	}
}

func isKneeAlong(t Table, p Point, axis string) bool {
	return t.IsKnee(p) && slices.ContainsFunc(t.Knees, func(k Knee) bool { return k.Axis == axis })
}

// measuredPoints are the measured points.
func measuredPoints(t Table) (points []int) {
	for n := range t.Points {
		if _, ok := pointAt(t, n); ok {
			points = append(points, n)
		}
	}
	return points
}

// fastestOf are the best of some points, in their own order.
func fastestOf(t Table, among []int, most int) []int {
	byRate := slices.SortedStableFunc(slices.Values(among), func(a, b int) int {
		return cmp.Compare(t.Points[b].RowsPerSecond.Median, t.Points[a].RowsPerSecond.Median)
	})
	if len(byRate) > most {
		byRate = byRate[:most]
	}
	return slices.Sorted(slices.Values(byRate))
}

// picks are the cells whose insides are shown: the best of each combination of words, such as methods, or of each value
// of the first axis where there are no words; the fastest of them if they are many. The text says which.
func picks(t Table, fit func(Point) bool) (points []int, which string) {
	axes := slices.DeleteFunc(slices.Clone(varying(t)), Ordered)
	if len(axes) == 0 && len(varying(t)) > 0 && len(varying(t)[0].Values) > 1 {
		axes = varying(t)[:1]
	}
	best := map[string]int{}
	for _, n := range measuredPoints(t) {
		p := t.Points[n]
		if !fit(p) {
			continue
		}
		name := ""
		for _, a := range axes {
			name += p.Settings.Value(a.Name) + "\x00"
		}
		if had, ok := best[name]; !ok || p.RowsPerSecond.Median > t.Points[had].RowsPerSecond.Median {
			best[name] = n
		}
	}
	for _, n := range best {
		points = append(points, n)
	}
	groups := len(points)
	slices.Sort(points)
	points = fastestOf(t, points, maxRows)
	switch names := joinedNames(axes); {
	case names == "" || len(varying(t)) == len(axes):
		which = "by cell."
	default:
		which = "in the fastest cell of each " + names + "."
	}
	return points, which + ofAll(len(points), groups)
}

func joinedNames(axes []Axis) string {
	var names []string
	for _, a := range axes {
		names = append(names, a.Name)
	}
	return strings.Join(names, " and ")
}
