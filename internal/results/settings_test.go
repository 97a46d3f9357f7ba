package results_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

func TestSettings(t *testing.T) {
	s := results.Settings{{Axis: "method", Value: "copy"}, {Axis: "workers", Value: "4"}}
	require.Equal(t, "method copy, workers 4", s.String())
	require.Equal(t, "4", s.Value("workers"))
	require.Empty(t, s.Value("Workers"), "the axes of one record are written in one way")
	require.Equal(t, results.Settings{{Axis: "method", Value: "copy"}}, s.Without("workers"))
	require.NotNil(t, results.Settings(nil).Without("workers"))
	require.Len(t, s, 2)
}

func TestFactsNameAxesInTheirOwnWay(t *testing.T) {
	for _, name := range []string{"batch-rows", "batch_rows", "Batch_Rows"} {
		require.Equal(t, "5", results.Fact{At: map[string]string{name: "5"}}.Value("batch-rows"))
	}
	require.Empty(t, results.Fact{At: map[string]string{"rows": "5"}}.Value("batch-rows"))
}
