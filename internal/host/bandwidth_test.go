package host

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBandwidth(t *testing.T) {
	for name, want := range map[string]int64{"c5n.9xlarge": 50e9, "c7i.24xlarge": 37.5e9, "c8gn.48xlarge": 600e9} {
		bits, ok := Bandwidth(name)
		require.True(t, ok, name)
		require.Equal(t, want, bits, name)
	}
	for _, name := range []string{"", "type", "c5n", "c5n.4xlarge", "c5n.9xlarge,50", "C5N.9XLARGE"} { // c5n.4xlarge is "up to 25"
		_, ok := Bandwidth(name)
		require.False(t, ok, name)
	}
}

func TestTheTableIsWhole(t *testing.T) {
	all, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, line := range all[1:] {
		bits, ok := Bandwidth(line[0])
		require.True(t, ok, line)
		require.GreaterOrEqual(t, bits, int64(10e9), line)
		require.False(t, seen[line[0]], line)
		seen[line[0]] = true
	}
}
