package results

import (
	"cmp"
	"slices"
)

// Near is the share of the best rate that may be given away for a smaller setting: within it a cell is as good as the
// best, and where more brings less than it, more has stopped to pay. All that looks for knees goes by it.
const Near = 0.05

// nearly reports whether a rate is as good as the best one but for what may be given away.
func nearly(rate, best float64) bool { return rate >= (1-Near)*best }

// PastKnee reports whether more of an axis has stopped paying: whether two values in succession were no better than
// the best before them. Rates are the medians of one row of cells in the order of the axis; what is not above 0 was
// not measured and says nothing. The best is the last that was better by more than Near, so that small steps which
// come to much are not taken for nothing.
func PastKnee(rates []float64) bool {
	const flatStop = 2
	best, flat := 0.0, 0
	for _, rate := range rates {
		switch {
		case rate <= 0:
		case !nearly(best, rate):
			best, flat = rate, 0
		default:
			flat++
		}
		if flat >= flatStop {
			return true
		}
	}
	return false
}

// Knee is where more of an axis stops paying, in one row of cells: the first value within Near of the row's best.
type Knee struct {
	Axis string   `json:"axis"`
	Row  Settings `json:"row"`  // the other axes
	At   string   `json:"at"`   // the axis's value
	Best string   `json:"best"` // where the row is fastest
	// Reached is false where At is the last value that was measured: more may still pay.
	Reached bool `json:"reached"`
}

// kneeAxis returns the axis along which knees are looked for: the plan's, if it has one of several values, else the
// one by which a cell is called large. ok is false where there is none.
func kneeAxis(planned string, axes []Axis) (axis Axis, ok bool) {
	for _, a := range axes {
		if planned != "" && sameName(a.Name, planned) && len(a.Values) > 1 {
			return a, true
		}
	}
	return sizeAxis(axes)
}

// sizeAxis returns the axis by which a cell is called large: how hard the server is driven, then how much it gets at a
// time, then any other that has an order. ok is false where none has.
func sizeAxis(axes []Axis) (axis Axis, ok bool) {
	for _, name := range []string{"workers", "batch-rows", "batch-bytes", "rows-per-transaction", ""} {
		for _, a := range axes {
			if (name == "" || sameName(a.Name, name)) && len(a.Values) > 1 && a.ordered() {
				return a, true
			}
		}
	}
	return Axis{}, false
}

// rowsAlong puts together the measured points that differ in one axis only, each row by size along the axis, or as the
// axis lists its values where they have none, the rows in the order of their first cells.
func rowsAlong(axis Axis, points []Point) [][]int {
	var rows [][]int
	at := map[string]int{}
	for i, p := range points {
		if !p.measured() {
			continue
		}
		k := p.Settings.Without(axis.Name).key()
		if _, ok := at[k]; !ok {
			at[k] = len(rows)
			rows = append(rows, nil)
		}
		rows[at[k]] = append(rows[at[k]], i)
	}
	order := compareValues
	if !axis.ordered() {
		order = func(a, b string) int { return cmp.Compare(slices.Index(axis.Values, a), slices.Index(axis.Values, b)) }
	}
	for _, row := range rows {
		slices.SortStableFunc(row, func(i, j int) int {
			return order(points[i].Settings.Value(axis.Name), points[j].Settings.Value(axis.Name))
		})
	}
	return rows
}

func (t Table) findKnees() []Knee {
	found := []Knee{}
	axis, ok := kneeAxis(t.planned, t.Axes)
	if !ok {
		return found
	}
	for _, row := range rowsAlong(axis, t.Points) {
		if len(row) < 2 {
			continue // nothing to compare with
		}
		best := t.Points[fastest(t.Points, row)]
		n := slices.IndexFunc(row, func(i int) bool { return t.Points[i].nearly(best) })
		p := t.Points[row[n]]
		found = append(found, Knee{
			Axis: axis.Name, Row: p.Settings.Without(axis.Name), Reached: n < len(row)-1,
			At: p.Settings.Value(axis.Name), Best: best.Settings.Value(axis.Name),
		})
	}
	return found
}

func (p Point) nearly(best Point) bool {
	return nearly(p.rate(), best.rate())
}

// isKnee reports whether a point is where its row's knee was reached.
func (t Table) isKnee(p Point) bool {
	return slices.ContainsFunc(t.Knees, func(k Knee) bool {
		return k.Reached && p.Settings.Value(k.Axis) == k.At && slices.Equal(p.Settings.Without(k.Axis), k.Row)
	})
}

// fastest returns the one with the highest median among some points, which must not be none; of equals the first.
func fastest(points []Point, among []int) int {
	return slices.MaxFunc(among, func(i, j int) int {
		return cmp.Or(cmp.Compare(points[i].rate(), points[j].rate()), cmp.Compare(j, i))
	})
}

// findBest returns the fastest point and the smallest that is nearly as fast; -1 and -1 when none was measured.
func (t Table) findBest() (best, smallest int) {
	near := t.measured()
	if len(near) == 0 {
		return -1, -1
	}
	best = fastest(t.Points, near)
	near = slices.DeleteFunc(near, func(i int) bool { return !t.Points[i].nearly(t.Points[best]) })
	return best, slices.MinFunc(near, func(i, j int) int { return smaller(t.Axes, t.Points[i], t.Points[j]) })
}

// smaller orders cells by what they ask of the server: workers first, then what goes at a time, then any other axis
// with an order; of equals the faster.
func smaller(axes []Axis, a, b Point) int {
	rest := slices.Clone(axes)
	for {
		axis, ok := sizeAxis(rest)
		if !ok {
			return -cmp.Compare(a.rate(), b.rate())
		}
		if order := compareValues(a.Settings.Value(axis.Name), b.Settings.Value(axis.Name)); order != 0 {
			return order
		}
		rest = slices.DeleteFunc(rest, func(x Axis) bool { return x.Name == axis.Name })
	}
}
