package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Near is the share of the best rate that may be given away for a smaller setting: a case within it is as good as the
// best, and a value that brings less than it is past the knee.
const Near = 0.05

// KneeOf returns the index of the knee in a row of rates, which are in the order of their axis and at least one: the
// first that is within near, a share, of the best.
func KneeOf(rates []float64, near float64) int {
	best := slices.Max(rates)
	return slices.IndexFunc(rates, func(rate float64) bool { return rate >= (1-near)*best })
}

// Knee is where more of an axis stops paying in one row of cases: the first value within Near of the row's best.
type Knee struct {
	Axis string   `json:"axis"`
	Row  Settings `json:"row"`  // the other axes
	At   string   `json:"at"`   // the axis's value
	Best string   `json:"best"` // where the row is fastest
	// Reached is false where At is the last value that was measured: more may still pay.
	Reached bool `json:"reached"`
}

// sizeAxis returns the axis that measures the size of a case: workers, then what is sent at a time, then any other with
// an order that does not say which rows are pushed: those are no cost to save.
func sizeAxis(axes []Axis) (axis Axis, ok bool) {
	for _, name := range []string{"workers", "batch-rows", "batch-bytes", "rows-per-transaction", ""} {
		for _, a := range axes {
			if (name == "" && !saysRows(a.Name) || sameName(a.Name, name)) && len(a.Values) > 1 && a.ordered() {
				return a, true
			}
		}
	}
	return Axis{}, false
}

func saysRows(axis string) bool {
	return slices.Contains([]string{"rows", "bytes", "duration", "seed", "payload-bytes"}, plainName(axis)) ||
		strings.HasPrefix(axis, "param.")
}

// rowsAlong groups the measured points that differ in one axis only. A row is sorted by size; rows are in
// the order of their first cases.
func rowsAlong(axis Axis, points []Point) [][]int {
	var rows [][]int
	at := map[string]int{}
	for i, p := range points {
		if !p.measured() {
			continue
		}
		k := fmt.Sprintf("%q", []Setting(p.Settings.Without(axis.Name)))
		if _, ok := at[k]; !ok {
			at[k] = len(rows)
			rows = append(rows, nil)
		}
		rows[at[k]] = append(rows[at[k]], i)
	}
	for _, row := range rows {
		slices.SortStableFunc(row, func(i, j int) int {
			return CompareValues(points[i].Settings.Value(axis.Name), points[j].Settings.Value(axis.Name))
		})
	}
	return rows
}

func (t Table) findKnees() []Knee {
	knees := []Knee{} // [] in JSON
	axis, ok := sizeAxis(t.Axes)
	for _, a := range t.varying() {
		if t.planned != "" && sameName(a.Name, t.planned) {
			axis, ok = a, true
		}
	}
	if !ok {
		return knees
	}
	for _, row := range rowsAlong(axis, t.Points) {
		if len(row) < 2 {
			continue // nothing to compare with
		}
		rates := make([]float64, len(row))
		for n, i := range row {
			rates[n] = t.Points[i].rate()
		}
		best := t.Points[fastestOf(t, row, 1)[0]]
		n := KneeOf(rates, Near)
		p := t.Points[row[n]]
		knees = append(knees, Knee{
			Axis: axis.Name, Row: p.Settings.Without(axis.Name), Reached: n < len(row)-1,
			At: p.Settings.Value(axis.Name), Best: best.Settings.Value(axis.Name),
		})
	}
	return knees
}

// isKnee reports whether a point is the knee of its row.
func (t Table) isKnee(p Point) bool {
	return slices.ContainsFunc(t.Knees, func(k Knee) bool {
		return k.Reached && p.Settings.Value(k.Axis) == k.At && slices.Equal(p.Settings.Without(k.Axis), k.Row)
	})
}

// findBest returns the fastest point and the smallest that is nearly as fast; -1 and -1 if none was measured.
func (t Table) findBest() (best, smallest int) {
	near := t.measured()
	if len(near) == 0 {
		return -1, -1
	}
	best = fastestOf(t, near, 1)[0]
	near = slices.DeleteFunc(near, func(i int) bool { return t.Points[i].rate() < (1-Near)*t.Points[best].rate() })
	return best, slices.MinFunc(near, func(i, j int) int { return smaller(t.Axes, t.Points[i], t.Points[j]) })
}

// smaller orders cases by their size axes, and equal ones by rate, the faster first.
func smaller(axes []Axis, a, b Point) int {
	rest := slices.Clone(axes)
	for {
		axis, ok := sizeAxis(rest)
		if !ok {
			return -cmp.Compare(a.rate(), b.rate())
		}
		if order := CompareValues(a.Settings.Value(axis.Name), b.Settings.Value(axis.Name)); order != 0 {
			return order
		}
		rest = slices.DeleteFunc(rest, func(x Axis) bool { return x.Name == axis.Name })
	}
}
