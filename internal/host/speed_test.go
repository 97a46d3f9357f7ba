package host

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMeasureSpeed(t *testing.T) {
	speed := MeasureSpeed(5 * time.Millisecond)
	require.Greater(t, speed, float64(1<<20), "a core reads a megabyte a second, however busy it is")
	require.False(t, math.IsInf(speed, 0))
}
