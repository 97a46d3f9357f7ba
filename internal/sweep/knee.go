package sweep

import (
	"fmt"
	"slices"

	"github.com/terapush/terapush/internal/record"
)

// flatStop is how many values in succession that are no better end a row.
const flatStop = 2

// ladder is one row: the cells that differ along the knee's axis only, in the order of its values, each with the rates of
// its pushes so far.
type ladder struct {
	cells []place
	rates map[place][]float64
}

// place names a cell by part and number.
type place struct{ part, cell int }

func placeOf(c Case) place { return place{c.Part, c.Number} }

// over tells whether more of the axis has stopped paying. A value is judged by the median of its pushes, and one without
// any says nothing. It is better where the best before it is not near it, as the knee of a table is; the best is the last
// that was better, so that small steps that come to much are not taken for nothing.
func (l *ladder) over() bool {
	best, flat := 0.0, 0
	for _, at := range l.cells {
		rate := median(l.rates[at])
		switch {
		case rate <= 0:
		case best < (1-record.Near)*rate:
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

// median is that of the values, 0 without any.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]/2 + sorted[len(sorted)/2]/2
}

// pastKnee says why a cell was skipped.
func pastKnee(axis string) string {
	return fmt.Sprintf("past the knee: two values of %s in succession were no better, %g %% of each had been reached before", axis, 100*(1-record.Near))
}
