package results_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

func TestNoRecordsNoTables(t *testing.T) {
	require.Empty(t, results.Tables(nil))
	require.Empty(t, results.Tables([]results.Record{{}}), "a record that was cut off before its head")
}

// A push in a case counts unless it failed, and the golden files show the rest: warm-ups, repeats that were skipped,
// cases never begun, and the best.
func TestWhatCounts(t *testing.T) {
	r := sweep("workers", []string{"1", "2"}, []float64{400, 100, 300}, nil)
	r.Entries[1].Status = results.Limited
	r.Entries = append(r.Entries, results.Entry{
		Repeat: 3, Status: results.Failed, Error: "disk full", Settings: r.Entries[0].Settings, Report: pushed(1),
	})
	table := one(t, r)
	p := table.Points[0]
	require.Equal(t, results.Sample{N: 3, Median: 300, Low: 100, High: 400, Values: []float64{400, 100, 300}}, p.RowsPerSecond)
	require.InDelta(t, 2.0/3, p.RowsPerSecond.Spread(), 1e-12)
	require.InDelta(t, 300, p.Typical.Result.RowsPerSecond, 0)
	require.Equal(t, results.Measured, p.Status)
	require.Equal(t, []int{1, 1}, []int{p.Limited, p.Failed})
	require.Equal(t, "disk full", p.Error)
	warns(t, table, "Pushes failed and do not count in 1 of 2 cases (workers 1).")

	even := one(t, sweep("workers", []string{"1"}, []float64{4, 1, 3, 2})).Points[0]
	require.InDelta(t, 2.5, even.RowsPerSecond.Median, 0)
	nothing := one(t, sweep("workers", []string{"1"}, nil))
	require.Equal(t, []int{-1, -1}, []int{nothing.Best, nothing.Smallest})
	require.Nil(t, nothing.Points[0].Typical)
}

// 0 is a value where it was measured, and none where it was not.
func TestZerosCount(t *testing.T) {
	r := sweep("workers", []string{"1", "2"}, []float64{100, 100, 100, 100}, []float64{100, 200, 300})
	for i, v := range []float64{0, 0, 0.5} {
		r.Entries[i].Report.Latency.VisibleSeconds = v
	}
	r.Entries[3].Status, r.Entries[3].Report.Result.Outcome = results.Limited, report.Interrupted // nobody has looked
	r.Entries[5].Report.Result.RowsPerSecond, r.Entries[5].Report.Result.BytesPerSecond = 0, 0
	table := one(t, r)
	require.Equal(t, results.Sample{N: 3, Median: 0, High: 0.5, Values: []float64{0, 0, 0.5}}, table.Points[0].VisibleSeconds)
	require.Zero(t, table.Points[1].VisibleSeconds.N, "an ack says that they are")
	require.Equal(t, []float64{100, 0, 300}, table.Points[1].RowsPerSecond.Values)
	require.Zero(t, table.Points[1].OverallRowsPerSecond.Low)
	require.Equal(t, 2, table.Points[1].CPUPerGiB.N, "of nothing that moved there is no share")
	require.InDelta(t, 100, table.Points[1].RowsPerSecond.Median, 0)
}

func TestFactsMatchByWhatTheyName(t *testing.T) {
	r := sweep("batch-bytes", []string{"16MiB", "1MB", "64KiB"}, []float64{1}, []float64{1}, []float64{1})
	r.Head.Parts[0].Push = map[string][]string{"method": {"copy"}}
	r.Head.Parts[0].Facts = &results.Facts{Points: []results.Fact{
		{At: map[string]string{"batch_bytes": "16777216", "method": "insert"}, Figures: map[string]float64{"rows_per_second": 1}},
		{At: map[string]string{"batch_bytes": "16777216", "method": "copy"}, Figures: map[string]float64{"rows_per_second": 2}},
		{At: map[string]string{"batch-bytes": "1,000,000"}, Figures: map[string]float64{"rows_per_second": 3}},
		{At: map[string]string{"batch-bytes": "64KiB", "replicas": "3"}, Figures: map[string]float64{"rows_per_second": 4}},
		{At: map[string]string{}, Figures: map[string]float64{"rows_per_second": 5}},
	}}
	table := one(t, r)
	require.InDelta(t, 2, table.Points[0].Fact.Figures["rows_per_second"], 0)
	require.InDelta(t, 3, table.Points[1].Fact.Figures["rows_per_second"], 0)
	require.Nil(t, table.Points[2].Fact, "it names what is not known here, and one that names nothing is of no case")
	require.Len(t, table.Facts.Points, 5)
}

func TestKnees(t *testing.T) {
	for _, c := range []struct {
		axis     string
		values   []string
		rates    []float64
		at, best string
		reached  bool
	}{
		{"workers", []string{"1", "2", "4", "8"}, []float64{50, 94, 96, 100}, "4", "8", true},
		{"workers", []string{"8", "4", "2", "1"}, []float64{100, 96, 94, 50}, "4", "8", true},
		{"workers", []string{"1", "2", "4", "8"}, []float64{50, 60, 70, 100}, "8", "8", false},
		{"batch-bytes", []string{"900KB", "1MB", "16MiB"}, []float64{100, 99, 98}, "900KB", "900KB", true},
		{"group-commit-interval", []string{"100ms", "1s"}, []float64{1, 2}, "1s", "1s", false},
		{"method", []string{"copy", "insert"}, []float64{1, 2}, "", "", false},
		{"workers", []string{"4"}, []float64{1}, "", "", false},
		// The row has not shown its knee where larger values were never measured.
		{"workers", []string{"1", "2", "4"}, []float64{1, 2}, "2", "2", false},
	} {
		rates := make([][]float64, len(c.values))
		for i, v := range c.rates {
			rates[i] = []float64{v}
		}
		table := one(t, sweep(c.axis, c.values, rates...))
		if c.at == "" {
			require.Empty(t, table.Knees, "%v", c.values)
			continue
		}
		require.Equal(t, []results.Knee{{Axis: c.axis, Row: results.Settings{}, At: c.at, Best: c.best, Reached: c.reached}}, table.Knees)
	}
}

func TestKneesAlongThePlansAxis(t *testing.T) {
	axes := []results.Axis{{Name: "workers", Values: []string{"1", "2"}}, {Name: "batch-rows", Values: []string{"10", "20", "30"}}, {Name: "tier", Values: []string{"small", "large"}}}
	r := grid(axes, func(cell int) float64 {
		workers, batch, tier := cell/6, cell/2%3, cell%2
		return float64(100*(workers+1)*(tier+1) + min(batch, 1)*50)
	})
	for planned, want := range map[string]struct {
		axis, at string
		rows     int
		reached  bool
	}{
		"": {"workers", "2", 6, false}, "batch_rows": {"batch-rows", "20", 4, true}, "tier": {"tier", "large", 6, false}, "gone": {"workers", "2", 6, false},
	} {
		r.Head.Parts[0].Knee = planned
		table := one(t, r)
		require.Len(t, table.Knees, want.rows, planned)
		for _, k := range table.Knees {
			require.Equal(t, []any{want.axis, want.at, want.reached}, []any{k.Axis, k.At, k.Reached}, planned)
		}
	}
}

// What tune leaves behind has a case for each setting that it tried, and none for what it might have tried.
func TestASearchHasTheCellsThatItTried(t *testing.T) {
	r := sweep("workers", []string{"1", "2", "4"}, []float64{1}, nil, []float64{3})
	require.Len(t, one(t, r).Points, 3, "a sweep was to push them all")
	r.Head.Parts[0].Sparse = true
	table := one(t, r)
	require.Len(t, table.Points, 2)
	require.NotContains(t, strings.Join(table.Warnings, " "), "Nothing was measured")
}

// A case that the plan leaves out is not missing, and one that was pushed before it was left out is shown.
func TestExcludedCells(t *testing.T) {
	r := sweep("workers", []string{"1", "2", "4"}, []float64{1}, nil, []float64{3})
	r.Head.Parts[0].Excluded = []int{1, 2}
	table := one(t, r)
	require.Len(t, table.Points, 2)
	require.Equal(t, "4", table.Points[1].Settings.Value("workers"))
	require.NotContains(t, strings.Join(table.Warnings, " "), "Nothing was measured")
}

// What a value stands for is among the inputs, and explains why such inputs differ.
func TestSettingsOfAValue(t *testing.T) {
	r := sweep("way", []string{"a", "b"}, []float64{1}, []float64{3})
	r.Head.Parts[0].Axes[0].Settings = map[string]map[string][]string{"b": {"dataset": {"people"}}, "a": {"set.x": {"y"}}}
	r.Entries[1].Report.Plan.Dataset = "people"
	table := one(t, r)
	require.Contains(t, table.Inputs, results.Input{Name: "--dataset of way b", Value: "people"})
	require.Contains(t, table.Inputs, results.Input{Name: "--set.x of way a", Value: "y"})
	require.NotContains(t, strings.Join(table.Warnings, " "), "datasets differ")
	r.Head.Parts[0].Axes[0].Settings = nil
	warns(t, one(t, r), "datasets differ")
}

func TestRecordsSideBySide(t *testing.T) {
	before, after := fixture(t, "workers.jsonl"), fixture(t, "workers-after.jsonl")
	table := one(t, before, after)
	require.Len(t, table.Points, 20)
	require.Equal(t, results.Axis{Name: "record", Values: []string{"workers.jsonl", "workers-after.jsonl"}}, table.Axes[0])
	require.Equal(t, results.Setting{Axis: "record", Value: "workers-after.jsonl"}, table.Points[10].Settings[0])
	require.Len(t, table.Axes[2].Values, 5)
	warns(t, table, "different versions of terapush: 0.5.0; 0.6.0.")
	require.Len(t, results.Tables([]results.Record{before, fixture(t, "four-methods.jsonl")}), 2, "other sweeps have tables of their own")
	require.Equal(t, []string{"workers.jsonl (1)", "workers.jsonl (2)"}, one(t, before, before).Axes[0].Values)
}

func TestSingleRuns(t *testing.T) {
	four, eight := fixture(t, "run-4.json"), fixture(t, "run-8.json")
	table := one(t, eight, four, four)
	require.Equal(t, []results.Axis{{Name: "workers", Values: []string{"4", "8"}}}, table.Axes, "what differs, and nothing else")
	require.Equal(t, 2, table.Points[0].RowsPerSecond.N, "equal runs are repeats of one case")

	other := fixture(t, "run-4.json")
	other.Entries[0].Report.Target.Settings["fsync"] = "off"
	table = one(t, four, other)
	require.Equal(t, []results.Axis{{Name: "set.fsync", Values: []string{"on", "off"}}}, table.Axes, "runs that differ are never repeats")
	warns(t, table, "With fsync=off a crash of the server may lose acknowledged rows")

	other = fixture(t, "run-4.json")
	other.Entries[0].Report.Plan.Options = map[string]string{"rows-per-transaction": "20000"}
	table = one(t, four, other, other)
	require.Equal(t, []results.Axis{{Name: "rows-per-transaction", Values: []string{"not given", "20000"}}}, table.Axes)
	require.Equal(t, 2, table.Points[1].RowsPerSecond.N)

	require.Empty(t, one(t, four).Axes)
}

// One run says it as all cases of a sweep do, whose plan and reports name the same option.
func TestOptionsAreInputs(t *testing.T) {
	run, plan := fixture(t, "run-4.json"), sweep("workers", []string{"1"}, []float64{1})
	run.Entries[0].Report.Plan.Options = map[string]string{"unlogged": "true"}
	plan.Head.Parts[0].Push = map[string][]string{"unlogged": {"true"}}
	plan.Entries[0].Report.Plan.Options = map[string]string{"unlogged": "true"}
	for _, r := range []results.Record{run, plan} {
		table := one(t, r)
		require.Contains(t, table.Inputs, results.Input{Name: "--unlogged", Value: "true"})
		warns(t, table, "With unlogged=true a crash of the server may lose acknowledged rows")
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*report.Report)
		want   string
	}{
		{"server", func(r *report.Report) { r.Target.Server = "PostgreSQL 18.0" }, "The servers or their versions differ between cases: PostgreSQL 17.2; PostgreSQL 18.0."},
		{"table", func(r *report.Report) { r.Target.Table = "t2" }, "The tables differ between cases: sales.archive; t2."},
		{"target", func(r *report.Report) { r.Target.URL = "postgres://other/db" }, "The targets differ between cases"},
		{"dataset", func(r *report.Report) { r.Plan.Dataset = "people" }, "The datasets differ between cases"},
		{"durability", func(r *report.Report) { r.Target.Settings["wal_level"] = "minimal" }, "durability settings differ"},
		{"fsync", func(r *report.Report) { r.Target.Settings["fsync"] = "off" }, "With fsync=off a crash"},
		{"unlogged", func(r *report.Report) { r.Plan.Options = map[string]string{"unlogged": "true"} }, "With unlogged=true a crash"},
		{"an unlogged table", func(r *report.Report) { r.Target.Settings["unlogged"] = "true" }, "With unlogged=true a crash"},
		{"options", func(r *report.Report) { r.Plan.Options = map[string]string{"unlogged": "true"} }, "durability settings differ between cases: fsync=on, full_page_writes=on, synchronous_commit=on; fsync=on, full_page_writes=on, synchronous_commit=on, unlogged=true."},
		{"group commit asked for", func(r *report.Report) { r.Plan.Options = map[string]string{"group-commit": "async"} }, "With group_commit=async a crash"},
		{"flush", func(r *report.Report) { r.Target.Settings["innodb_flush_log_at_trx_commit"] = "2" }, "With innodb_flush_log_at_trx_commit=2 a crash"},
		{"group commit", func(r *report.Report) { r.Target.Settings["group_commit"] = "async_mode" }, "With group_commit=async_mode a crash"},
		{"nowait", func(r *report.Report) { r.Target.Settings["commit_wait"] = "NOWAIT" }, "With commit_wait=NOWAIT a crash"},
		{"unproven", func(r *report.Report) { r.Verify.OK = false }, "The proof of arrival failed in 1 of 2 cases (workers 2)."},
		{"unverified", func(r *report.Report) { r.Verify = report.Verify{Mode: "none"} }, "Arrival was not verified in 1 of 2 cases (workers 2)"},
		{"delivery", func(r *report.Report) { r.Plan.Delivery = "at-least-once" }, "at-least-once and exactly-once are in one table"},
		{"discard", func(r *report.Report) { r.Target.Endpoint = "none" }, "such rates measure this client, not a database"},
		{"max rate", func(r *report.Report) { r.Plan.MaxRate = 1 << 20 }, "--max-rate held the client back in 1 of 2 cases"},
		{"client-bound", func(r *report.Report) { r.BoundBy.Verdict = "client-cpu" }, "The client was the limit"},
		{"source-bound", func(r *report.Report) { r.BoundBy.Verdict = "source" }, "The client was the limit"},
		{"sink", func(r *report.Report) { r.Target.Server = "MySQL 8.4.0-terapush-sink" }, "The target discards its rows"},
		{"retries", func(r *report.Report) { r.Result.Retries = 2 }, "Batches had to be sent again in 1 of 2 cases"},
	} {
		quiet := sweep("workers", []string{"1", "2"}, []float64{100, 101, 102}, []float64{200, 201, 202})
		require.Empty(t, one(t, quiet).Warnings, "nothing to warn of")
		for i := range 3 {
			c.change(quiet.Entries[3+i].Report)
		}
		table := one(t, quiet)
		warns(t, table, c.want)
		if c.name != "unproven" {
			require.NotContains(t, strings.Join(table.Warnings, "\n"), "The proof of arrival failed", c.name)
		}
	}
}

// A parameter of a dataset that is an axis makes other rows on purpose.
func TestDatasetsOfAnAxis(t *testing.T) {
	for _, axis := range []string{"dataset", "param.customers", "workers"} {
		s := sweep(axis, []string{"1", "2"}, []float64{100, 101, 102}, []float64{200, 201, 202})
		for i := range s.Entries {
			s.Entries[i].Report.Plan.Dataset = "orders " + string(rune('a'+i/3))
		}
		warnings := strings.Join(one(t, s).Warnings, " ")
		require.Equal(t, axis == "workers", strings.Contains(warnings, "The datasets differ"), axis)
	}
}

func TestWarningsOfNoise(t *testing.T) {
	clear := [][]float64{{100, 101, 102, 103}, {200, 201, 202, 203}, {300, 301, 302, 303}}
	require.Empty(t, one(t, sweep("workers", []string{"1", "2", "4"}, clear...)).Warnings)

	table := one(t, sweep("workers", []string{"1", "2", "4"}, clear[0], []float64{190, 200, 210, 220}, []float64{195, 205, 206, 215}))
	warns(t, table, "The best two cases (workers 4; workers 2) differ by 0.2 %, which is within their noise (±5.1 % and ±7.3 %): it is not known which is faster.")

	table = one(t, sweep("workers", []string{"1", "2"}, []float64{100, 101}, []float64{200}))
	warns(t, table, "Fewer than 3 pushes were measured in all cases: their noise is unknown.")
}
