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
