package analysis

import (
	"cmp"
	"slices"

	"github.com/terapush/terapush/internal/record"
)

// enough is the share of the best rate that a smaller setting must reach to be as good.
const enough = 0.95

// kneeAxis is the axis along which knees are looked for: how hard the server is driven, then how much it gets at a
// time, then any other that has an order. "" is none.
func kneeAxis(axes []record.Axis) string {
	preferred := []string{"workers", "batch-rows", "batch-bytes", "rows-per-transaction"}
	for _, name := range preferred {
		for _, a := range axes {
			if plainName(a.Name) == name && len(a.Values) > 1 && Ordered(a) {
				return a.Name
			}
		}
	}
	for _, a := range axes {
		if len(a.Values) > 1 && Ordered(a) {
			return a.Name
		}
	}
	return ""
}

// rowsAlong puts together the measured points that differ in one axis only, each row in the order of the axis, the rows
// in the order of their first cells.
func rowsAlong(axis string, points []Point) [][]int {
	var rows [][]int
	at := map[string]int{}
	for i, p := range points {
		if p.RowsPerSecond.N == 0 {
			continue
		}
		k := key(without(p.Settings, axis))
		if _, ok := at[k]; !ok {
			at[k] = len(rows)
			rows = append(rows, nil)
		}
		rows[at[k]] = append(rows[at[k]], i)
	}
	for _, row := range rows {
		slices.SortStableFunc(row, func(i, j int) int {
			return compareValues(valueOf(points[i].Settings, axis), valueOf(points[j].Settings, axis))
		})
	}
	return rows
}

func knees(axes []record.Axis, points []Point) []Knee {
	found := []Knee{}
	axis := kneeAxis(axes)
	if axis == "" {
		return found
	}
	for _, row := range rowsAlong(axis, points) {
		if len(row) < 2 {
			continue // nothing to compare with
		}
		best := fastest(points, row)
		for _, i := range row {
			if points[i].RowsPerSecond.Median >= enough*points[best].RowsPerSecond.Median {
				found = append(found, Knee{
					Axis: axis, Row: without(points[i].Settings, axis),
					At: valueOf(points[i].Settings, axis), Best: valueOf(points[best].Settings, axis),
				})
				break
			}
		}
	}
	return found
}

// fastest is the one with the highest median among some points, which must not be none.
func fastest(points []Point, among []int) int {
	return slices.MaxFunc(among, func(i, j int) int {
		return cmp.Or(cmp.Compare(points[i].RowsPerSecond.Median, points[j].RowsPerSecond.Median), cmp.Compare(j, i))
	})
}

// best finds the fastest point and the smallest that is nearly as fast; -1 and -1 when none was measured.
func best(axes []record.Axis, points []Point) (fastestPoint, smallest int) {
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
	measured = slices.DeleteFunc(measured, func(i int) bool {
		return points[i].RowsPerSecond.Median < enough*points[top].RowsPerSecond.Median
	})
	return top, slices.MinFunc(measured, func(i, j int) int { return smaller(axes, points[i], points[j]) })
}

// smaller orders cells by what they ask of the server: workers first, then what goes at a time, then any other axis with
// an order; of equals the faster.
func smaller(axes []record.Axis, a, b Point) int {
	rest := slices.Clone(axes)
	for len(rest) > 0 {
		axis := kneeAxis(rest)
		if axis == "" {
			break
		}
		if order := compareValues(valueOf(a.Settings, axis), valueOf(b.Settings, axis)); order != 0 {
			return order
		}
		rest = slices.DeleteFunc(rest, func(x record.Axis) bool { return x.Name == axis })
	}
	return -cmp.Compare(a.RowsPerSecond.Median, b.RowsPerSecond.Median)
}
