package results

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsNoNumberIsNotShownAsOne(t *testing.T) {
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.Equal(t, "-", amount(n))
		require.Equal(t, "-", seconds(n))
		require.Equal(t, "-", plusMinus(n))
		require.Empty(t, times(n, 1))
		require.Empty(t, times(1, n))
	}
	require.Equal(t, "0", amount(0))
	require.Equal(t, "-1,234", amount(-1234))
	require.Equal(t, "±5.0 %", plusMinus(0.05))
	require.Equal(t, "×0.50", times(1, 2))
}
