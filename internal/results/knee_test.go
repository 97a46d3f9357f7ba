package results

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTimesOfWhatIsNoNumber(t *testing.T) {
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0} {
		require.Empty(t, times(n, 1))
		require.Empty(t, times(1, n))
	}
	require.Equal(t, "×0.50", times(1, 2))
}

// A row ends when two values in succession were no better than the best before them.
func TestPastKnee(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		past  bool
	}{
		{nil, false},
		{[]float64{100, 200, 205, 206}, true},
		{[]float64{100, 200, 205, 220}, false},
		{[]float64{100, 200, 0, 205}, false},
		{[]float64{100, 104, 105}, true},
		{[]float64{100, 104, 108}, false},
		{[]float64{200, 100, 50}, true},
	} {
		require.Equal(t, c.past, PastKnee(c.rates), "%v", c.rates)
	}
}
