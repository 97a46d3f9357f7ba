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
	require.Equal(t, "0 B", Size(-1))
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text     string
		amount   float64
		time, ok bool
	}{
		{"2000", 2000, false, true}, {" 2,000", 2000, false, true}, {"2e3", 2000, false, true}, {"2_000", 2000, false, true}, {"16Ki", 16384, false, true}, {"64KiB", 65536, false, true},
		{"100ms", .1, true, true}, {"10m", 600, true, true}, {"off", 0, false, false}, {"inf", 0, false, false}, {"", 0, false, false},
	} {
		amount, time, ok := Parse(c.text)
		require.Equal(t, []any{c.amount, c.time, c.ok}, []any{amount, time, ok}, c.text)
	}
}

func TestWhole(t *testing.T) {
	for text, want := range map[string]string{
		"2000000": "2000000", "2,000,000": "2000000", "2_000_000": "2000000", "2e6": "2000000", "2E+6": "2000000", "2M": "2000000",
		"2000k": "2000000", "2000K": "2000000", "1.5k": "1500", "1Gi": "1073741824", "2T": "2000000000000", "010": "10", "0x10": "16",
		"-3": "-3", " 4 ": "4", "1e30": "1000000000000000000000000000000",
	} {
		n, ok := Whole(text)
		require.True(t, ok, text)
		require.Equal(t, want, n.String(), text)
	}
	for _, text := range []string{"", "x", "2m", "2g", "1.5", "1e-3", "1e999", "1,5", "1,0000", "1__0", "_1", "2MB", "NaN", "Inf", "1e", "k"} {
		_, ok := Whole(text)
		require.False(t, ok, text)
	}
}
