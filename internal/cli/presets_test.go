package cli_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
)

// Every case of every preset is a push that nothing but a server could refuse. At full size its page shows what the
// article published; behind the page are the figures to the last digit, and the batches of a push.
func TestPresets(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range []struct {
		preset, target, via string
		cells               map[string]int // by scale; the default is cloud
	}{
		{"singlestore-terabyte", "singlestore://admin:hunter2@h:3306/db", "", map[string]int{"": 3, "laptop": 3, "ci": 1}},
		{"singlestore-terabyte", "mariadb://u@h:3306/db", "", map[string]int{"cloud": 3, "laptop": 3, "ci": 1}},
		{"singlestore-terabyte-pipeline", "singlestore://admin@h:3306/db", "s3://bucket/prefix", map[string]int{"": 1, "laptop": 3, "ci": 1}},
		{"yugabyte-rows-per-transaction", "yugabyte://u@h:5433/db", "", map[string]int{"": 23, "laptop": 7, "ci": 3}},
		{"yugabyte-rows-per-transaction", "postgres://u@h/db", "", map[string]int{"cloud": 23, "laptop": 11, "ci": 4}},
		{"databend-four-methods", "databend://root@h:8000/default", "", map[string]int{"": 44, "laptop": 16, "ci": 8}},
		{"databend-copy-cluster", "databend://root@h:8000/default", "s3://bucket/prefix", map[string]int{"": 1, "laptop": 3, "ci": 1}},
		{"doris-group-commit", "doris://root@h:9030/db", "", map[string]int{"": 47, "laptop": 23, "ci": 9}},
		{"doris-group-commit-4x", "doris://root@h:9030/db", "", map[string]int{"": 47}},
		{"oracle-fast-ingest", "oracle://u@h:1521/service", "", map[string]int{"": 32, "laptop": 12, "ci": 8}},
	} {
		tested[c.preset] = true
		for scale, cells := range c.cells {
			s := preset(t, c.preset, c.target, c.via, scale)
			require.Len(t, s.Cases, cells, "%s at %s", c.preset, scale)
			for _, part := range s.Parts {
				require.NotEmpty(t, part.Facts.Machine)
				require.Contains(t, part.Facts.Source, "https://")
			}
			if scale == "" {
				tables := results.Tables([]results.Record{measured(s)})
				var page bytes.Buffer
				require.NoError(t, results.Markdown.Write(&page, tables))
				page.WriteByte('\n')
				for _, c := range s.Cases {
					p, figures := tables[c.Part].Points[c.Number], map[string]float64{}
					if p.Fact != nil {
						figures = p.Fact.Figures
					}
					fmt.Fprintln(&page, s.Parts[c.Part].Name, p.Settings, c.Plan.Batches(), "batches", figures)
				}
				require.NotContains(t, page.String(), "hunter2")
				golden.Equal(t, "presets/"+c.preset+".md", page.String())
			}
		}
	}
	for _, name := range sweep.Presets() {
		require.NotEmpty(t, sweep.PresetTitle(name))
		require.True(t, tested[name], "preset %s is not tested", name)
	}
}

// preset makes the pushes of a preset.
func preset(t *testing.T, name, target, via, scale string) *sweep.Sweep {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	file, text, err := sweep.Preset(name)
	require.NoError(t, err)
	o := sweep.Options{
		Sources: sweep.Sources{Drivers: drivers, LookupEnv: func(string) (string, bool) { return "", false }},
		Target:  target, Scale: scale, Push: map[string][]string{},
	}
	if via != "" {
		o.Push["staging"] = []string{via}
	}
	plan, err := sweep.ParsePlan(file, text, o)
	require.NoError(t, err)
	s, err := sweep.New(plan, o)
	require.NoError(t, err)
	return s
}

// measured returns the record of a sweep whose cases have all moved a thousand rows in two seconds.
func measured(s *sweep.Sweep) results.Record {
	r := results.Record{Head: results.Head{Name: s.Plan.Name, Title: s.Plan.Title, Repeats: 1, Parts: s.Parts}}
	for _, c := range s.Cases {
		r.Entries = append(r.Entries, results.Entry{
			Part: c.Part, Cell: c.Number, Settings: c.Settings, Status: results.Measured,
			Report: &report.Report{
				Schema: report.Schema,
				Result: report.Result{Outcome: report.OK, Rows: 1000, Seconds: 2, RowsPerSecond: 500, BytesPerSecond: 1 << 20, WireBytes: 3 << 20},
				Phases: report.Phases{Stage: 1.5, Commit: 0.5},
				Client: report.Client{Cores: 2, LoadSeconds: 0.4},
				Stored: report.Stored{Bytes: 600_000, BytesPerRow: 600},
			},
		})
	}
	return r
}
