package results_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchproc"

	"github.com/terapush/terapush/internal/results"
)

// What benchstat reads with takes every line, and gives the numbers back.
func TestBenchstatReadsBenchmarks(t *testing.T) {
	of := everything(t)
	in := benchfmt.NewReader(strings.NewReader(rendered(t, results.Benchmarks.Write, of)), "bench")
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
	table := results.Tables(of)[1]
	for _, p := range table.Points {
		name := "Sweep/copy-workers/set.synchronous_commit=" + p.Settings[0].Value + "/workers=" + p.Settings[1].Value + "-2"
		got := benchmath.AssumeNothing.Summary(benchmath.NewSample(rates[name], &benchmath.DefaultThresholds), 0.95)
		require.InDelta(t, p.RowsPerSecond.Median, got.Center, 1e-6, name)
	}
}

// Two versions stand in one table of benchstat's once it is told which inputs are to differ, and in two before.
func TestBenchstatComparesVersions(t *testing.T) {
	for ignored, tables := range map[string]int{"": 2, "terapush": 1} {
		var p benchproc.ProjectionParser
		byConfig, err := p.Parse(".config", nil)
		require.NoError(t, err)
		if ignored != "" {
			_, err = p.Parse(ignored, nil) // what another projection has is not in .config
			require.NoError(t, err)
		}
		keys := map[benchproc.Key]bool{}
		for _, file := range []string{"workers.jsonl", "workers-after.jsonl"} {
			in := benchfmt.NewReader(strings.NewReader(rendered(t, results.Benchmarks.Write, records(t, file))), file)
			for in.Scan() {
				if r, ok := in.Result().(*benchfmt.Result); ok {
					keys[byConfig.Project(r)] = true
				}
			}
			require.NoError(t, in.Err())
		}
		require.Len(t, keys, tables, "ignored: %q", ignored)
	}
}

// A table's configuration is its own: what the table before had and it has not is taken back.
func TestBenchmarksOfEachTableHaveItsInputs(t *testing.T) {
	of := records(t, "workers.jsonl", "run-4.json", "two-parts.jsonl")
	in := benchfmt.NewReader(strings.NewReader(rendered(t, results.Benchmarks.Write, of)), "bench")
	for _, table := range results.Tables(of) {
		for _, p := range table.Points {
			for range p.Pushes {
				require.True(t, nextResult(in))
				r := in.Result().(*benchfmt.Result)
				require.Len(t, r.Config, len(table.Inputs))
				for _, input := range table.Inputs {
					require.Contains(t, []string{r.GetConfig(input.Name), r.GetConfig(strings.ReplaceAll(input.Name, " ", "-")),
						r.GetConfig("flag-" + strings.TrimPrefix(input.Name, "--"))}, input.Value)
				}
			}
		}
	}
	require.False(t, nextResult(in))
}

func nextResult(in *benchfmt.Reader) bool {
	for in.Scan() {
		if _, ok := in.Result().(*benchfmt.Result); ok {
			return true
		}
	}
	return false
}
