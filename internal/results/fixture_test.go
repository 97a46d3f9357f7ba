package results_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

var update = flag.Bool("update", false, "write fixtures and golden files anew")

// The records below are kept as files, which the tests of other packages read as well: testdata/*.jsonl are sweeps and
// testdata/*.json are runs.
func TestFixtures(t *testing.T) {
	for name, text := range map[string][]byte{
		"four-methods.jsonl":  lines(t, fourMethods()),
		"workers.jsonl":       lines(t, workers("0.5.0", 1)),
		"workers-after.jsonl": lines(t, workers("0.6.0", 0.88)),
		"two-parts.jsonl":     lines(t, twoParts()),
		"run-4.json":          object(t, plainRun(4, 410_000)),
		"run-8.json":          object(t, plainRun(8, 640_000)),
	} {
		path := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, text, 0o644))
		}
		have, err := os.ReadFile(path)
		require.NoError(t, err, "go test -update writes it")
		require.Equal(t, string(text), string(have), name)
	}
}

func lines(t *testing.T, r results.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	require.NoError(t, out.Encode(r.Head))
	for _, e := range r.Entries {
		require.NoError(t, out.Encode(e))
	}
	return b.Bytes()
}

func object(t *testing.T, r report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	return b.Bytes()
}

func fixture(t testing.TB, name string) results.Record {
	t.Helper()
	r, err := results.Read(filepath.Join("testdata", name))
	require.NoError(t, err)
	return r
}

func started() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func laptop() host.Machine {
	return host.Machine{Host: "anna-laptop", OS: "Linux 6.12.1", Arch: "amd64", CPU: "AMD EPYC 7B13", Cores: 2, MemoryBytes: 8 << 30}
}

// pushed is the report of a push of 1 GiB in rows of so many bytes at a rate.
func pushed(rate, rowBytes float64) *report.Report {
	const bytes = 1 << 30
	rows := float64(int64(bytes / rowBytes))
	r := report.Report{
		Schema: report.Schema,
		Run:    report.Run{ID: "20260102-030405-abcd", Started: started()},
		Target: report.Target{
			Backend: "postgres", URL: "postgres://anna@db1.shop.internal:5432/orders", Server: "PostgreSQL 17.2",
			Endpoint: "10.1.2.3:5432", Table: "sales.archive",
			Settings: map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "128MB"},
		},
		Plan: report.Plan{
			Method: "copy", Format: "pgbinary", Delivery: "exactly-once", Dataset: "documents", Seed: 1, Rows: int64(rows),
			Workers: 4, Buffers: 9, BatchRows: 16384, BatchBytes: 8716288, DistinctRows: int64(rows), Distinct: bytes, ZstdRatio: 1.01,
			Options: map[string]string{},
		},
		Result: report.Result{
			Outcome: report.OK, Rows: int64(rows), Batches: 128, PayloadBytes: bytes, EncodedBytes: bytes + bytes/50, WireBytes: bytes + bytes/40,
			Seconds: rows / rate, RowsPerSecond: rate, BytesPerSecond: bytes / (rows / rate), Attempts: 128,
		},
		Phases:  report.Phases{Prepare: 0.05, Fill: 0.5, Load: rows / rate, Verify: 0.9},
		Rates:   report.Rates{Load: rate},
		Latency: report.Latency{Loop: report.Closed, BatchSeconds: report.Quantiles{P50: 4 * 16384 / rate, P90: 5 * 16384 / rate, P99: 8 * 16384 / rate, Max: 9 * 16384 / rate}},
		Client:  report.Client{Cores: 2, UserSeconds: 0.5, SystemSeconds: 0.3, PeakRSSBytes: 128 << 20, LoadSeconds: 0.31},
		Stored:  report.Stored{Bytes: int64(rows * rowBytes * 1.2), BytesPerRow: rowBytes * 1.2},
		Verify:  report.Verify{Mode: "count", Ran: true, OK: true, ExpectedRows: int64(rows), FoundRows: int64(rows)},
	}
	return &r
}

func plainRun(workers int, rate float64) report.Report {
	r := pushed(rate, 512)
	r.Run.ID = fmt.Sprintf("20260102-030405-%04d", workers)
	r.Plan.Workers = workers
	return *r
}

// workers is a sweep of two axes with 5 repeats: the rate grows up to 4 workers, and twice as much without waiting for
// the disk. What 8 workers reach is multiplied.
func workers(version string, at8 float64) results.Record {
	axes := []results.Axis{
		{Name: "set.synchronous_commit", Values: []string{"on", "off"}},
		{Name: "workers", Values: []string{"1", "2", "4", "8", "16"}},
	}
	r := results.Record{Head: results.Head{
		Schema: results.Schema, Name: "copy-workers", Title: "Workers of COPY, with and without waiting for the disk", Scale: "laptop",
		Digest: "1", Started: started(), Version: version, Machine: laptop(), Repeats: 5,
		Parts: []results.Part{{
			Axes: axes, Cells: 10,
			Push: map[string][]string{"bytes": {"1GiB"}, "target": {"postgres://anna@db1.shop.internal:5432/orders"}, "table": {"sales.archive"}},
		}},
	}}
	random := rand.New(rand.NewPCG(7, 7))
	curve := []float64{100_000, 190_000, 340_000, 350_000, 345_000}
	entry := func(cell, repeat int, warmUp bool) results.Entry {
		i, waits := cell%5, axes[0].Values[cell/5]
		rate := curve[i] * (1 + 0.02*random.NormFloat64())
		if waits == "off" {
			rate *= 2
		}
		if axes[1].Values[i] == "8" {
			rate *= at8
		}
		p := pushed(float64(int(rate)), 512)
		p.Plan.Workers, _ = strconv.Atoi(axes[1].Values[i])
		p.Target.Settings["synchronous_commit"] = waits
		return results.Entry{
			Cell: cell, Repeat: repeat, WarmUp: warmUp, Status: results.Measured, Started: started(), Seconds: p.Result.Seconds + 2, Report: p,
			Settings: []results.Setting{{Axis: axes[0].Name, Value: waits}, {Axis: axes[1].Name, Value: axes[1].Values[i]}},
		}
	}
	r.Entries = append(r.Entries, entry(0, 0, true))
	r.Entries[0].Report.Result.RowsPerSecond = 1 // what a warm-up says counts for nothing
	for repeat := range 5 {
		for cell := range 10 {
			r.Entries = append(r.Entries, entry(cell, repeat, false))
		}
	}
	return r
}

// seedCells are what the article measured: rows per second of the database alone and with the making of the rows.
func seedCells() *results.Facts {
	batches := []string{"2000", "3000", "4000", "5000", "10000", "20000", "30000", "40000", "50000", "100000", "200000"}
	facts := &results.Facts{
		Source: "wubx/databend_ingestion, 2025", Machine: "one client, Databend on hardware that is not told",
		Note: "the rate of stage-load is of upload and COPY together",
	}
	for _, m := range []struct {
		method      string
		db, overall []float64
	}{
		{"insert", []float64{3670, 5258, 6738, 7965, 13722, 22350, 27477, 30966, 35429, 42547, 57713},
			[]float64{3492, 4894, 6188, 7176, 11577, 16926, 20088, 21601, 23607, 26228, 29283}},
		{"insert-no-presign", []float64{3929, 5564, 7015, 8330, 14209, 22290, 25015, 28858, 31329, 37159, 46836},
			[]float64{3724, 5176, 6396, 7461, 11835, 16988, 18638, 20287, 21416, 23840, 26121}},
		{"streaming-load", []float64{6958, 9971, 12773, 15283, 25380, 41066, 51693, 63355, 66232, 88356, 127643},
			[]float64{6189, 8497, 10421, 12080, 17453, 23789, 26885, 29927, 30464, 33666, 37320}},
		{"stage-load", []float64{69565, 76746, 82237, 86319, 121803, 173310, 188324, 214133, 234192, 261780, 260417},
			[]float64{31084, 32627, 33537, 33900, 38730, 42686, 43454, 44412, 45524, 44954, 43009}},
	} {
		for i, b := range batches {
			facts.Points = append(facts.Points, results.Fact{
				At: map[string]string{"method": m.method, "batch_rows": b}, RowsPerSecond: m.db[i], OverallRowsPerSecond: m.overall[i],
			})
		}
	}
	return facts
}

// fourMethods is a sweep of the seed's 44 cells, each pushed once: one cell failed, one was cut by its limit, the end of
// one row was skipped and the last row was never begun.
func fourMethods() results.Record {
	facts := seedCells()
	axes := []results.Axis{{Name: "method"}, {Name: "batch-rows"}}
	for i := 0; i < 44; i += 11 {
		axes[0].Values = append(axes[0].Values, facts.Points[i].At["method"])
	}
	for i := range 11 {
		axes[1].Values = append(axes[1].Values, facts.Points[i].At["batch_rows"])
	}
	axes[1].Values[3] = "5KB" // the same number in other words
	r := results.Record{Head: results.Head{
		Schema: results.Schema, Name: "databend-four-methods", Title: "Four ways into Databend", Scale: "laptop", Digest: "2", Started: started(),
		Version: "0.5.0", Machine: laptop(), Repeats: 1,
		Parts: []results.Part{{Axes: axes, Cells: 44, Push: map[string][]string{"rows": {"2000000"}, "workers": {"1"}}, Facts: facts}},
	}}
	for cell := range 42 {
		method, batch := axes[0].Values[cell/11], axes[1].Values[cell%11]
		p := pushed(facts.Points[cell].RowsPerSecond*1.25, 766)
		p.Target.Backend, p.Target.URL, p.Target.Server, p.Target.Table = "databend", "databend://anna@db1.shop.internal:8000/orders", "Databend v1.2.900", "archive"
		p.Target.Settings = map[string]string{"max_threads": "2"}
		p.Plan.Method, p.Plan.Workers, p.Plan.Format, p.Plan.Dataset = method, 1, "csv", "people"
		if method == "stage-load" {
			p.Phases.Stage, p.Phases.Commit, p.Phases.Load = p.Phases.Load*0.7, p.Phases.Load*0.3, 0
			p.Latency.VisibleSeconds = 0.8
		}
		e := results.Entry{Cell: cell, Status: results.Measured, Started: started(), Seconds: p.Result.Seconds + 3, Report: p,
			Settings: []results.Setting{{Axis: "method", Value: method}, {Axis: "batch-rows", Value: batch}}}
		switch cell {
		case 0:
			e.Status = results.Limited
		case 13:
			e.Status, e.Report = results.Failed, nil
			e.Error = `connect to 10.1.2.3:8000: access denied for user "anna"@"anna-laptop" | db1.shop.internal`
		case 20, 21:
			e.Status, e.Report, e.Error = results.Skipped, nil, "past the knee"
		}
		r.Entries = append(r.Entries, e)
	}
	return r
}

// twoParts is a sweep whose parts have other axes and other guarantees, and proofs that failed or were not asked for.
func twoParts() results.Record {
	r := results.Record{Head: results.Head{
		Schema: results.Schema, Name: "groups", Title: "Group commit", Scale: "ci", Digest: "3", Started: started(), Version: "0.5.0", Machine: laptop(), Repeats: 1,
		Parts: []results.Part{
			{Name: "stream", Title: "Stream load by batch", Cells: 2, Axes: []results.Axis{{Name: "batch-bytes", Values: []string{"1MiB", "16MiB"}}}},
			{Name: "groups", Title: "Inserts by group commit", Cells: 3, Axes: []results.Axis{{Name: "group-commit", Values: []string{"off_mode", "sync_mode", "async_mode"}}}},
		},
	}}
	for part, p := range r.Head.Parts {
		for cell, value := range p.Axes[0].Values {
			push := pushed(float64(50_000*(cell+1)*(part+1)), 120)
			push.Target.Backend, push.Target.Server, push.Target.Settings = "doris", "Apache Doris 3.0.1", map[string]string{"group_commit": "off_mode"}
			if part == 1 {
				push.Target.Settings["group_commit"] = value
				push.Verify.OK = cell != 1
				if cell == 2 {
					push.Plan.Delivery, push.Verify, push.Latency.VisibleSeconds = "at-least-once", report.Verify{Mode: "none"}, 9.5
					push.Result.Retries = 3
				}
			}
			r.Entries = append(r.Entries, results.Entry{Part: part, Cell: cell, Status: results.Measured, Started: started(), Report: push,
				Settings: []results.Setting{{Axis: p.Axes[0].Name, Value: value}}})
		}
	}
	return r
}
