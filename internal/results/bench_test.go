package results_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/terapush/terapush/internal/results"
)

// benchmarks are what benchstat reads, with the library that it reads with.
func benchmarks(t *testing.T, of []results.Record) (all []*benchfmt.Result) {
	t.Helper()
	in := benchfmt.NewReader(strings.NewReader(rendered(t, results.Benchmarks, of)), "bench")
	for in.Scan() {
		switch r := in.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Fatal(r)
		case *benchfmt.Result:
			all = append(all, r.Clone())
		}
	}
	require.NoError(t, in.Err())
	return all
}

// Each push is a line, with the inputs of its own table and none of the table before.
func TestBenchstatReadsBenchmarks(t *testing.T) {
	of := everything(t)
	of[3].Entries[0].Report.Result.RowsPerSecond = 0 // is a rate like any other
	lines := benchmarks(t, of)
	for _, table := range results.Tables(of) {
		for _, p := range table.Points {
			for _, want := range p.RowsPerSecond.Values {
				require.NotEmpty(t, lines)
				rate, _ := lines[0].Value("rows/s")
				require.InDelta(t, want, rate, 1e-6)
				require.Len(t, lines[0].Config, len(table.Inputs))
				for _, input := range table.Inputs {
					key := strings.ReplaceAll(strings.Replace(input.Name, "--", "flag-", 1), " ", "-")
					require.Equal(t, input.Value, lines[0].GetConfig(key), key)
				}
				lines = lines[1:]
			}
		}
	}
	require.Empty(t, lines)
}
