package units

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsNoNumberIsNotShownAsOne(t *testing.T) {
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.Equal(t, "-", Amount(n))
		require.Equal(t, "-", Seconds(n))
		require.Equal(t, "-", Percent(n))
	}
	require.Equal(t, "0", Amount(0))
	require.Equal(t, "-1,234", Amount(-1234))
	require.Equal(t, "5.0 %", Percent(0.05))
	require.Equal(t, "0 B", Bytes(-1))
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text     string
		amount   float64
		time, ok bool
	}{
		{"2000", 2000, false, true}, {" 2,000", 2000, false, true}, {"2e3", 2000, false, true}, {"64KiB", 65536, false, true},
		{"100ms", .1, true, true}, {"10m", 600, true, true}, {"off", 0, false, false}, {"inf", 0, false, false}, {"", 0, false, false},
	} {
		amount, time, ok := Parse(c.text)
		require.Equal(t, []any{c.amount, c.time, c.ok}, []any{amount, time, ok}, c.text)
	}
}
