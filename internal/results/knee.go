package results

import (
	"cmp"
	"slices"
)

// nearlyAs tells whether a point is as good as the best one but for what may be given away.
func nearlyAs(p, best Point) bool {
	return p.RowsPerSecond.Median >= (1-Near)*best.RowsPerSecond.Median
}

// kneeAxis is the axis along which knees are looked for: the plan's, if it has one of several values, else the one by
// which a cell is called large. ok is false where there is none.
func kneeAxis(planned string, axes []Axis) (axis Axis, ok bool) {
	for _, a := range axes {
		if planned != "" && SameName(a.Name, planned) && len(a.Values) > 1 {
			return a, true
		}
	}
	return sizeAxis(axes)
}

// sizeAxis is the axis by which a cell is called large: how hard the server is driven, then how much it gets at a time,
// then any other that has an order. ok is false where none has.
func sizeAxis(axes []Axis) (axis Axis, ok bool) {
	preferred := []string{"workers", "batch-rows", "batch-bytes", "rows-per-transaction"}
	for _, name := range preferred {
		for _, a := range axes {
			if SameName(a.Name, name) && len(a.Values) > 1 && Ordered(a) {
				return a, true
			}
		}
	}
	for _, a := range axes {
		if len(a.Values) > 1 && Ordered(a) {
			return a, true
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
		if p.RowsPerSecond.N == 0 {
			continue
		}
		k := key(p.Settings.Without(axis.Name))
		if _, ok := at[k]; !ok {
			at[k] = len(rows)
			rows = append(rows, nil)
		}
		rows[at[k]] = append(rows[at[k]], i)
	}
	order := compareValues
	if !Ordered(axis) {
		order = func(a, b string) int { return cmp.Compare(slices.Index(axis.Values, a), slices.Index(axis.Values, b)) }
	}
	for _, row := range rows {
		slices.SortStableFunc(row, func(i, j int) int {
			return order(points[i].Settings.Value(axis.Name), points[j].Settings.Value(axis.Name))
		})
	}
	return rows
}

func knees(planned string, axes []Axis, points []Point) []Knee {
	found := []Knee{}
	axis, ok := kneeAxis(planned, axes)
	if !ok {
		return found
	}
	for _, row := range rowsAlong(axis, points) {
		if len(row) < 2 {
			continue // nothing to compare with
		}
		best := points[fastest(points, row)]
		n := slices.IndexFunc(row, func(i int) bool { return nearlyAs(points[i], best) })
		p := points[row[n]]
		found = append(found, Knee{
			Axis: axis.Name, Row: p.Settings.Without(axis.Name), Reached: n < len(row)-1,
			At: p.Settings.Value(axis.Name), Best: best.Settings.Value(axis.Name),
		})
	}
	return found
}

// IsKnee tells whether a point is where its row's knee was reached.
func (t Table) IsKnee(p Point) bool {
	return slices.ContainsFunc(t.Knees, func(k Knee) bool {
		return k.Reached && p.Settings.Value(k.Axis) == k.At && slices.Equal(p.Settings.Without(k.Axis), k.Row)
	})
}

// fastest is the one with the highest median among some points, which must not be none.
func fastest(points []Point, among []int) int {
	return slices.MaxFunc(among, func(i, j int) int {
		return cmp.Or(cmp.Compare(points[i].RowsPerSecond.Median, points[j].RowsPerSecond.Median), cmp.Compare(j, i))
	})
}

// best finds the fastest point and the smallest that is nearly as fast; -1 and -1 when none was measured.
func best(axes []Axis, points []Point) (fastestPoint, smallest int) {
	var measured []int
	for i, p := range points {
		if p.RowsPerSecond.N > 0 {
			measured = append(measured, i)
		}
	}
	if len(measured) == 0 {
		return -1, -1
	}
	top := fastest(points, measured)
	measured = slices.DeleteFunc(measured, func(i int) bool { return !nearlyAs(points[i], points[top]) })
	return top, slices.MinFunc(measured, func(i, j int) int { return smaller(axes, points[i], points[j]) })
}

// smaller orders cells by what they ask of the server: workers first, then what goes at a time, then any other axis with
// an order; of equals the faster.
func smaller(axes []Axis, a, b Point) int {
	rest := slices.Clone(axes)
	for len(rest) > 0 {
		axis, ok := sizeAxis(rest)
		if !ok {
			break
		}
		if order := compareValues(a.Settings.Value(axis.Name), b.Settings.Value(axis.Name)); order != 0 {
			return order
		}
		rest = slices.DeleteFunc(rest, func(x Axis) bool { return x.Name == axis.Name })
	}
	return -cmp.Compare(a.RowsPerSecond.Median, b.RowsPerSecond.Median)
}
