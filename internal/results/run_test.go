package results_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

// ofRun is the page of a run, as others see it.
func ofRun(t *testing.T, r *report.Report) string {
	t.Helper()
	r.Complete()
	records, err := results.WithoutNames([]results.Record{results.Of(*r)})
	require.NoError(t, err)
	return rendered(t, results.HTML, records)
}

// The page of a run says what a slide needs, and no name of a host, user, table or file.
func TestPageOfOneRun(t *testing.T) {
	r := pushed(500_000)
	r.Run.Flags = map[string][]string{"table": {"sales.archive"}, "workers": {"4"}, "set": {"work_mem=64MB", "search_path=sales"}}
	r.Result.WireBytes = 1 << 30
	r.BoundBy = report.Bound{
		Verdict: "target", Shares: map[string]float64{"target": .94}, Seconds: map[string]float64{"target": 15.8, "client-cpu": 1},
		Evidence: report.Evidence{MachineEvidence: report.MachineEvidence{NIC: "lo"}},
	}
	page := ofRun(t, r)
	for _, want := range []string{
		"<h1>2,097,152 rows into PostgreSQL 17.2 by copy</h1>",
		"terapush push TARGET --set work_mem=64MB --set",
		"--table &#39;table 1&#39; --workers 4",
		"client with 2 cores · client and server on one machine",
		"<strong>target</strong>", "94 % of the workers&#39; time", "<strong>complete</strong>", "count: 2,097,152 of 2,097,152 rows",
		"Worker-seconds by bottleneck",
	} {
		require.Contains(t, page, want)
	}
	for _, name := range []string{"sales", "archive", "anna", "shop", "Cases measured", "All cases"} {
		require.NotContains(t, page, name)
	}

	r.BoundBy.Evidence.NIC = "ens5"
	require.NotContains(t, ofRun(t, r), "on one machine")

	r.Run.Flags["table"], r.Target.Table = []string{"orders"}, "public.orders"
	page = ofRun(t, r)
	require.Contains(t, page, " · table 1 · ")
	require.NotContains(t, page, "table 2", "one table has one number")
}

// The page of a comparison names the slower case and the range, and holds no name of a file.
func TestPageOfAComparison(t *testing.T) {
	records, err := results.WithoutNames(records(t, "workers.jsonl", "workers-after.jsonl"))
	require.NoError(t, err)
	var page strings.Builder
	require.NoError(t, results.Compare(records[0], records[1], 0.05).Write(&page, results.HTML))
	for _, want := range []string{
		"<h1>B against A: 2 slower, 2 inconclusive, 6 equal within 5 %</h1>", "set.synchronous_commit on, workers 8 -12.0 %",
		"-17.3 … -6.3 %", "slower by more than 5 %", "A: 0.5.0",
	} {
		require.Contains(t, page.String(), want)
	}
	require.NotContains(t, page.String(), "jsonl")

	page.Reset()
	few := fixture(t, "run-4.json")
	require.NoError(t, results.Compare(few, few, 0).Write(&page, results.HTML))
	require.Contains(t, page.String(), "<strong>1</strong> of 1 case")
}

// A run that failed has a page, which says so.
func TestPageOfAFailedRun(t *testing.T) {
	r := pushed(500_000)
	r.Result.Outcome, r.Verify = report.Failed, report.Verify{Mode: "count"}
	page := ofRun(t, r)
	require.Contains(t, page, "failed after")
	require.Contains(t, page, "it did not run")
}

func TestPageOfAMergedRun(t *testing.T) {
	r := pushed(500_000)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n := range int64(2) {
		r.Run.Started = start
		shard := report.ShardResult{Shard: report.Shard{Index: n, Count: 2, Rows: 1 << 20}, Outcome: report.OK, RowsPerSecond: 250_000,
			Start: start, End: start.Add(4 * time.Second), BoundBy: "target"}
		if r.Merged == nil {
			r.Merged = new(report.Merged)
		}
		r.Merged.Shards = append(r.Merged.Shards, shard)
	}
	page := ofRun(t, r)
	require.Contains(t, page, "<h3>Shards</h3>")
	require.Contains(t, page, `<th scope="col">bottleneck</th>`)
	require.Contains(t, page, `<td class="n">1</td><td>ok</td><td class="n">1,048,576</td>`)
}

func TestPageOfALoad(t *testing.T) {
	r := pushed(500_000)
	r.Run.Flags = map[string][]string{"header": {"true"}}
	r.Plan.Files = &report.Files{Paths: []string{"/home/anna/a.csv", "/home/anna/b.csv"}, Bytes: 1 << 20, Format: "csv"}
	r.Verify.Files = &report.VerifiedFiles{Records: 1 << 21, Acknowledged: 1 << 21, Claimed: 1 << 21}
	page := ofRun(t, r)
	require.Contains(t, page, "<h1>2,097,152 records from 2 files into PostgreSQL 17.2 by copy</h1>")
	require.Contains(t, page, "terapush load TARGET FILE… --header=true")
	require.NotContains(t, page, "anna")
}
