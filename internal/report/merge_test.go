package report_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// shards are the reports of a run of so many thousand rows in each of count shards, which send 100 rows a second: shard i
// from second 10 + i on, for ten seconds. latencies are their batches' seconds, which become one histogram.
func shards(t *testing.T, count int, latencies func(shard int) []float64) []report.Report {
	t.Helper()
	began := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	all := make([]report.Report, count)
	for i := range all {
		r := &all[i]
		r.Run = report.Run{
			ID: "nightly", Started: began, ProcessStarted: began.Add(time.Duration(i) * time.Second),
			Shard: &report.Shard{Index: int64(i), Count: int64(count), FirstKey: 500 + int64(i)*1000, Rows: 1000},
		}
		r.Plan = report.Plan{Method: "copy", Rows: 1000 * int64(count), FirstKey: 500, BatchRows: 10, Workers: 2}
		r.Result = report.Result{
			Outcome: report.OK, Rows: 1000, PayloadBytes: 8000, Batches: 100, Seconds: 10, RowsPerSecond: 100,
			Tries: report.Tries{Retries: int64(i), Errors: map[string]int64{"connection": 1}},
		}
		r.Timeline = report.Timeline{Interval: 1, Moments: []report.Moment{{At: 10, Phase: "fill"}}}
		for s := range 10 {
			n := int64(s+1) * 100
			r.Timeline.Moments = append(r.Timeline.Moments, report.Moment{At: float64(11 + s), Phase: "load", Rows: n, PayloadBytes: 8 * n})
		}
		r.Client = report.Client{Host: fmt.Sprintf("host-%d", i), Cores: 4, UserSeconds: 2, PeakRSSBytes: int64(i)}
		r.Phases = report.Phases{Load: 10, Fill: float64(i)}
		r.Verify = report.Verify{Mode: "ack", Ran: true, OK: true, ExpectedRows: 1000, FoundRows: 1000}
		r.BoundBy = report.NewBound(map[event.Limit]float64{event.LimitTarget: 10, event.LimitNetwork: 15 * float64(i%2)}, report.Evidence{})
		h := stats.NewHistogram()
		for _, seconds := range latencies(i) {
			require.NoError(t, h.RecordValue(int64(seconds*1e6)))
			r.Latency.BatchSeconds.Max = max(r.Latency.BatchSeconds.Max, seconds)
		}
		var err error
		r.Latency.Histogram, err = stats.Encode(h)
		require.NoError(t, err)
		r.Complete()
	}
	return all
}

// Shards that share cores have them once; containers of one machine have no more than it has.
func TestMergeCountsCoresOnce(t *testing.T) {
	for name, c := range map[string]struct {
		clients []report.Client // with 4 cores to use
		cores   int
	}{
		"one host":             {[]report.Client{{Host: "a", Machine: "m"}, {Host: "a", Machine: "m"}}, 4},
		"two hosts":            {[]report.Client{{Host: "a", Machine: "m", MachineCores: 4}, {Host: "b", Machine: "n", MachineCores: 4}}, 8},
		"hosts without a boot": {[]report.Client{{Host: "a"}, {Host: "b"}}, 8},
		"containers, no quota": {[]report.Client{{Host: "a", Machine: "m", MachineCores: 4}, {Host: "b", Machine: "m", MachineCores: 4}}, 4},
		"containers, quotas":   {[]report.Client{{Host: "a", Machine: "m", MachineCores: 64}, {Host: "b", Machine: "m", MachineCores: 64}}, 8},
	} {
		all := shards(t, 2, none)
		for i := range all {
			all[i].Client = c.clients[i]
			all[i].Client.Cores, all[i].Client.LoadSeconds = 4, 11
		}
		r, err := report.Merge(all)
		require.NoError(t, err)
		require.Equal(t, c.cores, r.Client.Cores, name)
		// 22 s of CPU in the 11 s in which rows moved.
		require.InDelta(t, 2/float64(c.cores), r.BoundBy.Evidence.ClientCPU, 1e-9, name)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		require.Contains(t, text.String(), fmt.Sprintf("client CPU %.0f %% of %d cores", 200/float64(c.cores), c.cores))
	}
	idle, err := report.Merge(shards(t, 2, none))
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, idle.WriteText(&text))
	require.NotContains(t, text.String(), "client CPU", "what is not known is not 0 %")
}

func none(int) []float64 { return nil }

func TestMerge(t *testing.T) {
	all := shards(t, 3, none)
	all[0].Run.ResumedRows, all[2].Run.ResumedRows = 3, 4
	all[1].Warnings, all[2].Warnings = []string{"the disk is slow"}, []string{"the disk is slow"}
	slices.Reverse(all)
	r, err := report.Merge(all)
	require.NoError(t, err)
	require.Equal(t, []any{"nightly", (*report.Shard)(nil), report.OK}, []any{r.Run.ID, r.Run.Shard, r.Result.Outcome})
	require.Equal(t, []int64{3000, 300, 3, 24_000, 6, 12, 2}, []int64{
		r.Result.Rows, r.Result.Batches, r.Result.Retries, r.Result.PayloadBytes, int64(r.Plan.Workers), int64(r.Client.Cores), r.Client.PeakRSSBytes,
	})
	require.Equal(t, []float64{6, 10, 2}, []float64{r.Client.UserSeconds, r.Phases.Load, r.Phases.Fill})
	require.Equal(t, map[string]int64{"connection": 3}, r.Result.Errors)
	require.Equal(t, []any{true, int64(3000), int64(3000)}, []any{r.Verify.OK, r.Verify.ExpectedRows, r.Verify.FoundRows})
	require.Equal(t, []string{"the disk is slow"}, r.Warnings)
	require.EqualValues(t, 7, r.Run.ResumedRows)
	require.Equal(t, "target", r.BoundBy.Verdict, "of all workers' time, though not of that shard's")
	require.InDelta(t, 15./45, r.BoundBy.Shares["network"], 1e-9)

	// From second 10 of the first to second 22, when the last is done.
	require.Equal(t, []float64{12, 250, 2000}, []float64{r.Result.Seconds, r.Result.RowsPerSecond, r.Result.BytesPerSecond})
	require.Equal(t, []int64{0, 1, 2}, []int64{r.Merged.Shards[0].Index, r.Merged.Shards[1].Index, r.Merged.Shards[2].Index})
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "ok: 3,000 rows in 12.00 s · 250 rows/s")
	require.Contains(t, text.String(), "      1       ok  1,000  1.00 s  10.00 s     100      0 B/s   network")
}

// The shards of a load are runs of their own, of the same files, each there once.
func TestMergeOfALoad(t *testing.T) {
	load := func() []report.Report {
		all := shards(t, 3, none)
		for i := range all {
			all[i].Run.ID, all[i].Plan.Rows = fmt.Sprintf("load-%d", i), int64(1000+i)
			all[i].Plan.Files = &report.Files{Paths: []string{"a.csv"}, Digest: "a"}
			all[i].Verify.Files = &report.VerifiedFiles{Records: int64(1000 + i), Acknowledged: 1000, Claimed: 1000, Rejected: int64(i)}
			all[i].Run.Shard.FirstKey = 0
		}
		return all
	}
	whole, err := report.Merge(load())
	require.NoError(t, err)
	require.EqualValues(t, 3003, whole.Plan.Rows)
	require.Equal(t, &report.VerifiedFiles{Records: 3003, Acknowledged: 3000, Claimed: 3000, Rejected: 3}, whole.Verify.Files)

	for want, change := range map[string]func([]report.Report) []report.Report{
		"shard 1/3 is missing":     func(all []report.Report) []report.Report { return slices.Delete(all, 1, 2) },
		"shard 2/3 is missing":     func(all []report.Report) []report.Report { return all[:2] },
		"shard 0/3 is there twice": func(all []report.Report) []report.Report { return append(all, all[0]) },
		"had other files": func(all []report.Report) []report.Report {
			all[2].Plan.Files.Digest = "b"
			return all
		},
		"belong to different runs": func(all []report.Report) []report.Report {
			all[2].Run.Shard.Count = 4
			return all
		},
	} {
		_, err := report.Merge(change(load()))
		require.ErrorContains(t, err, want)
	}
}

// A shard that failed makes the whole fail, in its words; one that had nothing left to send has no part in the time.
func TestMergeOfAShardThatFailed(t *testing.T) {
	all := shards(t, 3, none)
	all[1].Result.Outcome, all[1].Result.Error, all[1].Verify.OK = report.Failed, "it is down", false
	all[2].Timeline.Moments = nil
	r, err := report.Merge(all)
	require.NoError(t, err)
	require.Equal(t, []any{report.Failed, "shard 1: it is down; ", false}, []any{r.Result.Outcome, r.Result.Error, r.Verify.OK})
	require.Equal(t, 11.0, r.Result.Seconds)
}

// The first two shards warm up for 2.5 seconds, and the third ends within its warm-up.
func TestMergeAfterWarmUps(t *testing.T) {
	all := shards(t, 3, none)
	for i := range 2 {
		all[i].Measured = &report.Measured{From: 12.5, Seconds: 7.5, Rows: 700, PayloadBytes: 5600}
	}
	all[2].Measured = &report.Measured{From: 20}
	r, err := report.Merge(all)
	require.NoError(t, err)
	require.Equal(t, &report.Measured{From: 12.5, Seconds: 8.5, Rows: 1400, PayloadBytes: 11_200}, r.Measured)
	require.Equal(t, []float64{12, 1400 / 8.5, 11_200 / 8.5}, []float64{r.Result.Seconds, r.Result.RowsPerSecond, r.Result.BytesPerSecond})

	for i := range all {
		all[i].Measured = &report.Measured{From: 20}
	}
	r, err = report.Merge(all)
	require.NoError(t, err)
	require.True(t, r.Unmeasured())
	require.Zero(t, r.Result.RowsPerSecond)
}

func TestMergeRefuses(t *testing.T) {
	for says, change := range map[string]func([]report.Report) []report.Report{
		"no reports":                        func([]report.Report) []report.Report { return nil },
		"is of no shard: leave it out (ok)": func(all []report.Report) []report.Report { all[0].Run.Shard = nil; return all },
		"keys 1500 to 2499 are missing: no report has them, between shard 0 and shard 2":       func(all []report.Report) []report.Report { return slices.Delete(all, 1, 2) },
		"keys 2500 to 4499 are missing: no report has them, between shard 1 and the run's end": func(all []report.Report) []report.Report { return all[:2] },
		"keys 3500 to 4499 are there twice, in shard 3 and in shard 3":                         func(all []report.Report) []report.Report { return append(all, all[3]) },
		"belong to different runs":     func(all []report.Report) []report.Report { all[2].Run.ID = "daily"; return all },
		"sent rows of different plans": func(all []report.Report) []report.Report { all[2].Plan.Seed = 7; return all },
		"keys 2499 to 2499 are missing: no report has them, between shard 1 and shard 2":       func(all []report.Report) []report.Report { all[1].Run.Shard.Rows--; return all },
		"keys 4499 to 4499 are missing: no report has them, between shard 3 and the run's end": func(all []report.Report) []report.Report { all[3].Run.Shard.Rows--; return all },
		"4 reports of 5 shards": func(all []report.Report) []report.Report {
			for i := range all { // a shard of no rows
				all[i].Run.Shard.Count = 5
			}
			return all
		},
		"the latencies of shard 2": func(all []report.Report) []report.Report { all[2].Latency.Histogram = "AAAA"; return all },
	} {
		_, err := report.Merge(change(shards(t, 4, none)))
		require.ErrorContains(t, err, says)
	}
}

// Percentiles of a merged report are those of all batches, within the precision of the histograms.
func TestMergedPercentiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var union []float64
	all := shards(t, 200, func(shard int) (mine []float64) {
		for range 500 {
			mine = append(mine, (1+float64(shard))*random.ExpFloat64()/100+1e-6)
		}
		union = append(union, mine...)
		return mine
	})
	r, err := report.Merge(all)
	require.NoError(t, err)
	slices.Sort(union)
	q := r.Latency.BatchSeconds
	for percent, is := range map[float64]float64{50: q.P50, 90: q.P90, 99: q.P99, 99.9: q.P999, 100: q.Max} {
		want := union[int(percent/100*float64(len(union)-1))]
		require.InEpsilon(t, want, is, 0.002, fmt.Sprint(percent))
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(text), ":null")
}
