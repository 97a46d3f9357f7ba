package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"github.com/terapush/terapush/internal/analysis"
	"github.com/terapush/terapush/internal/render"
)

// What benchstat reads with takes every line, and gives the numbers back.
func TestBenchstatReadsBenchmarks(t *testing.T) {
	of := everything(t)
	in := benchfmt.NewReader(strings.NewReader(rendered(t, render.Benchmarks, of)), "bench")
	rates := map[string][]float64{}
	for in.Scan() {
		switch r := in.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Fatal(r)
		case *benchfmt.Result:
			rate, ok := r.Value("rows/s")
			require.True(t, ok)
			_, ok = r.Value("sec/op")
			require.True(t, ok)
			rates[string(r.Name.Full())] = append(rates[string(r.Name.Full())], rate)
		}
	}
	require.NoError(t, in.Err())
	table := analysis.Tables(of)[1]
	for _, p := range table.Points {
		name := "Sweep/copy-workers/set.synchronous_commit=" + p.Settings[0].Value + "/workers=" + p.Settings[1].Value + "-2"
		got := benchmath.AssumeNothing.Summary(benchmath.NewSample(rates[name], &benchmath.DefaultThresholds), 0.95)
		require.InDelta(t, p.RowsPerSecond.Median, got.Center, 1e-6, name)
	}
}
