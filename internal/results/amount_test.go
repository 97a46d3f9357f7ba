package results_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

func TestAmount(t *testing.T) {
	for _, c := range []struct {
		value    string
		amount   float64
		ok, time bool
	}{
		{"2000", 2000, true, false}, {"2,000", 2000, true, false}, {"64KiB", 65536, true, false}, {"100ms", .1, true, true}, {"off", 0, false, false},
	} {
		amount, ok := results.Amount(c.value)
		require.Equal(t, c.amount, amount, c.value)
		require.Equal(t, c.ok, ok, c.value)
		require.Equal(t, c.time, results.IsDuration(c.value), c.value)
	}
}
