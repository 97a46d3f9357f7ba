package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// planned is a report before the run.
func planned() report.Report {
	return report.Report{
		Run: report.Run{ID: "20260102-030405-abcd", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		Target: report.Target{
			Backend: "postgres", URL: "postgres://load@db1:5432,db2:5432/bench", Server: "PostgreSQL 17.2",
			Endpoint: "db1:5432", Table: "public.documents", Settings: map[string]string{"synchronous_commit": "off"},
		},
		Plan: report.Plan{
			Method: "copy", Format: "pgbinary", Delivery: "exactly-once", Dataset: "documents", Seed: 1,
			Rows: 2_000_000, Workers: 4, Buffers: 9, BatchRows: 16_384, BatchBytes: 8_716_288,
			DistinctRows: 2_064_384, Distinct: 1_073_479_680, ZstdRatio: 1.0074,
			Options: map[string]string{"unlogged": "true"},
		},
		Verify: report.Verify{Mode: "full"},
	}
}

// done is a report of a run that put everything in.
func done() report.Report {
	r := planned()
	r.Result.Outcome = report.OK
	r.Measure(event.Snapshot{
		PhaseSeconds: map[event.Phase]float64{event.Prepare: 0.042, event.Fill: 0.513, event.Load: 3.42, event.Verify: 0.88},
		Rows:         2_000_000, Batches: 123, PayloadBytes: 1_040_000_000, EncodedBytes: 1_064_002_583, WireBytes: 1_064_901_118,
		Attempts: 124, Retries: 1, Refills: 0,
		Outcomes:      map[event.Outcome]int64{event.Applied: 122, event.Already: 1, event.Unknown: 1},
		Errors:        map[loader.Class]int64{loader.ClassConnection: 1, loader.ClassData: 0},
		WorkerSeconds: map[event.State]float64{event.WaitBuffer: 0.08, event.Sending: 9.1, event.WaitAck: 4.25, event.BackingOff: 0.25},
		Verification:  event.Verification{OK: true, ExpectedRows: 2_000_000, FoundRows: 2_000_000},
	}, event.Snapshot{}, stats.Quantiles{P50: 0.102, P90: 0.14, P99: 0.2104, P999: 0.221, Max: 0.2333, Count: 123},
		stats.Usage{Cores: 2, UserSeconds: 2.1, SystemSeconds: 1.3, PeakRSSBytes: 1_241_513_984})
	r.Latency.Loop = report.Closed
	r.BoundBy = report.NewBound(map[event.Limit]float64{
		event.LimitSource: .08, event.LimitClient: .5, event.LimitNetwork: .1, event.LimitTarget: 13,
	}, report.Evidence{
		SocketEvidence: report.SocketEvidence{
			Blocked: .6, Awaited: .31, RoundTrips: .0001, Kernel: true, RwndLimited: .81, TurnsPerBatch: 4.1,
			RTTSeconds: .0003, Connections: 9,
		},
		MachineEvidence: report.MachineEvidence{
			ClientCPU: .31, HottestCore: .44, MachineCPU: .33, NIC: "ens5", NICBits: 19e9, NICShare: .38, NICSpeed: 50e9,
		},
		WirePerPayload: 1.02,
	})
	r.Timeline = report.NewTimeline(1, []stats.Moment{
		{At: 1.555, Phase: "load", Rows: 584_000, PayloadBytes: 303_680_000, BoundBy: "target"},
		{At: 2.555, Phase: "load", Rows: 1_168_000, PayloadBytes: 607_360_000, Retries: 1, BoundBy: "network"},
		{At: 4.855, Phase: "done", Rows: 2_000_000, PayloadBytes: 1_040_000_000, Retries: 1},
	})
	r.Stored = report.NewStored(1_290_001_408, 2_000_000)
	r.Verify = report.Verify{Mode: "full", Ran: true, OK: true, ExpectedRows: 2_000_000, FoundRows: 2_000_000, SampledRows: 10_000}
	return r
}

// reports are one of every outcome, by the name of their golden files.
func reports() map[string]report.Report {
	all := map[string]report.Report{"ok": done()}

	r := done()
	r.Run.Resumed, r.Run.ResumedRows = true, 1_200_000
	r.Result.RowsPerSecond *= 0.4
	r.Plan.MaxRate, r.Latency.Loop = 500<<20, report.Open
	all["resumed"] = r

	r = done()
	r.Result.Outcome, r.Result.Rows = report.Interrupted, 1_200_000
	r.Result.Error = "stopped by interrupt"
	r.Verify = report.Verify{Mode: "count"}
	all["interrupted"] = r

	r = done()
	r.Result.Outcome = report.VerificationFailed
	r.Verify.OK, r.Verify.FoundRows = false, 1_999_000
	r.Verify.BadCount = 120
	for i := range int64(5) {
		r.Verify.BadBatches = append(r.Verify.BadBatches, report.BadBatch{
			Number: 17 + i, FirstKey: (17 + i) * 16_384, LastKey: (18+i)*16_384 - 1, Rows: 16_384, Found: 16_184, Reason: "short",
		})
	}
	r.Verify.Problems = []string{"row 5 differs in column payload at byte 3:\nsent 0x41, found 0x42"}
	all["verification_failed"] = r

	r = done()
	r.Result.Outcome, r.Result.Rows, r.Result.Missing = report.Rejected, 1_999_997, 3
	r.Result.Error = "the server took 16381 of 16384 rows: Duplicate entry '7' for key 'PRIMARY'"
	r.Plan.DistinctRows, r.Plan.Distinct = 0, 0
	r.Verify = report.Verify{Mode: "none"}
	r.Stored = report.Stored{}
	for i := range 9 {
		r.Warnings = append(r.Warnings, "warning number "+string(rune('1'+i)))
	}
	all["rejected"] = r

	r = done()
	r.Result.Outcome, r.Result.Rows, r.Result.Unknown = report.Unknown, 1_983_616, 1
	r.Target.URL = "mysql://o'neil@/bench"
	r.Plan.ZstdRatio, r.Plan.Workers = 0, 1 // rows of numbers alone have no ratio
	r.Verify = report.Verify{Mode: "none"}
	all["unknown"] = r

	r = done()
	r.Target = report.Target{
		Backend: "databend", URL: "databend://load@db1:8000/bench", Via: "s3://bucket/prefix?endpoint=http%3A%2F%2Fstore%3A9000",
		Server: "Databend 1.2", Endpoint: "db1:8000", Table: "bench.documents",
	}
	r.Plan.Method, r.Plan.Format, r.Plan.GroupBatches = "stage-load", "parquet", 16
	r.Result.StoredBytes = r.Result.EncodedBytes
	r.Phases.Stage, r.Phases.Commit, r.Phases.Load = r.Phases.Load, 1.5, 0
	r.Rates = report.Rates{Stage: 584_795, Commit: 406_504, Verify: r.Rates.Verify}
	all["staged"] = r

	r = done()
	r.Target = report.Target{
		Backend: "oracle", URL: "oracle://load@db1:1521/FREEPDB1", Server: "Oracle 23.26", Endpoint: "db1:1521", Table: "BENCH.JOURNAL",
		Settings: map[string]string{"driver": "go-ora v2.9.0"},
	}
	r.Plan.Method, r.Plan.Format, r.Plan.Dataset = "array", "columns", "journal"
	r.Latency.VisibleSeconds = 1.2
	r.Cost = report.Cost{
		"redo_bytes": 1_288_490_189, "round_trips": 812, "cpu_seconds": 3.44, "commits": 1230, "sorted_rows": 0.5,
	}
	r.Result.Outcome, r.Result.Error = report.Failed, "ORA-01653: unable to extend table"
	r.Warnings = all["rejected"].Warnings
	all["server_cost"] = r

	r = report.Report{Run: planned().Run, Target: planned().Target}
	r.Target.Table, r.Target.Server = "documents", ""
	r.Latency.Loop, r.Result.Errors = report.Closed, map[string]int64{"connection": 1}
	r.Result.Outcome, r.Result.Error = report.PreflightFailed, "connect: dial tcp db1:5432: connection refused (is the server up?)"
	r.Verify.Mode = "count"
	all["preflight_failed"] = r
	return all
}

func TestHeadlineAfterAWarmUp(t *testing.T) {
	r := done()
	r.Measured = &report.Measured{Seconds: 2, Rows: 1_000_000}
	require.Equal(t, "ok: 2,000,000 rows in 3.42 s · after the warm-up 1,000,000 in 2.00 s · 584,795 rows/s · 290.0 MiB/s payload", lineOf(t, r, "ok"))
	r.Measured.Rows = 0
	require.Equal(t, "ok: 2,000,000 rows in 3.42 s · nothing measured: it ended within the warm-up", lineOf(t, r, "ok"))
}

// A proof that finds a hundred wrong rows still ends in a line that can be read.
func TestALineOfManyProblems(t *testing.T) {
	r := done()
	r.Verify.OK = false
	for i := range 100 {
		r.Verify.Problems = append(r.Verify.Problems, fmt.Sprintf("row %d is missing", i))
	}
	require.Equal(t, "verify FAILED: full · 2,000,000 of 2,000,000 rows found · 10,000 rows compared byte for byte · row 0 is missing · row 1 is missing · row 2 is missing · and 97 more problems, see --json",
		lineOf(t, r, "verify FAILED"))
}

func TestText(t *testing.T) {
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			require.NoError(t, r.WriteText(&text))
			golden.Equal(t, name+".txt", text.String())
			require.LessOrEqual(t, strings.Count(text.String(), "\n"), 15)
		})
	}
}

// These golden files hold every field, and what is there before anything was measured.
func TestJSON(t *testing.T) {
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			require.NoError(t, r.WriteJSON(&text))
			if name == "server_cost" || name == "verification_failed" || name == "preflight_failed" {
				golden.Equal(t, name+".json", text.String())
			}

			in := json.NewDecoder(bytes.NewReader(text.Bytes()))
			in.DisallowUnknownFields()
			var back report.Report
			require.NoError(t, in.Decode(&back))
			r.Complete()
			require.Equal(t, r.Result, back.Result)
			require.ErrorIs(t, in.Decode(&back), io.EOF, "exactly one object")
			require.NotContains(t, text.String(), "null")
		})
	}
}

func TestMeasure(t *testing.T) {
	r := report.Report{Result: report.Result{Outcome: report.Failed, Error: "why"}}
	r.Measure(event.Snapshot{
		PhaseSeconds: map[event.Phase]float64{event.Load: 6, event.Stage: 1, event.Commit: 2, event.Finish: 1, event.Verify: 4},
		Rows:         1000, ResumedRows: 400, PayloadBytes: 10_000, ResumedBytes: 4000,
		StoredRows: 500, StoredBytes: 5500,
		UnknownBatches: 2, FailedBatches: 3, MissingRows: 4,
		Verification: event.Verification{FoundRows: 800},
	}, event.Snapshot{}, stats.Quantiles{}, stats.Usage{})
	require.Equal(t, report.Failed, r.Result.Outcome)
	require.Equal(t, "why", r.Result.Error)
	require.Equal(t, 10.0, r.Result.Seconds, "until the last row is visible, verification not included")
	require.Equal(t, 60.0, r.Result.RowsPerSecond, "of this process")
	require.Equal(t, 600.0, r.Result.BytesPerSecond)
	require.Equal(t, report.Rates{Load: 100, Stage: 500, Commit: 200, Verify: 200}, r.Rates)
	require.EqualValues(t, 5500, r.Result.StoredBytes)
	require.Equal(t, int64(400), r.Run.ResumedRows)
	require.Equal(t, [3]int64{2, 3, 4}, [3]int64{r.Result.Unknown, r.Result.GivenUp, r.Result.Missing})

	var nothing report.Report
	nothing.Measure(event.Snapshot{}, event.Snapshot{}, stats.Quantiles{}, stats.Usage{})
	nothing.BoundBy = report.NewBound(nil, report.Evidence{})
	require.Empty(t, nothing.BoundBy.Verdict)
	require.NoError(t, nothing.WriteJSON(io.Discard), "no rate is infinite")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrors(t *testing.T) {
	require.ErrorContains(t, done().WriteText(broken{}), "disk full")
	require.ErrorContains(t, done().WriteJSON(broken{}), "disk full")
}

func TestEvidence(t *testing.T) {
	a := stats.Account{
		Sockets: event.Sockets{Dialled: 9}, Fastest: 1e6,
		Total: stats.Window{
			Seconds: 10, Workers: map[event.State]float64{event.Sending: 30, event.Idle: 10}, CPU: 5, Cores: 2, Payload: 1000, Wire: 1310,
			Sockets: event.Sockets{
				Blocked: 20, Awaited: 10, Turns: 50, RoundTrips: 4, Kernel: true, Busy: 25, RwndLimited: 20, SndbufLimited: 1,
				Retransmits: 3, Segments: 600,
			},
		},
	}
	require.Equal(t, report.Evidence{
		SocketEvidence: report.SocketEvidence{
			Blocked: .5, Awaited: .25, RoundTrips: .1, Kernel: true, RwndLimited: .8, SndbufLimited: .04, TurnsPerBatch: 5,
			RTTSeconds: .08, Connections: 9, Retransmitted: .005, FastestBits: 8e6,
		},
		MachineEvidence: report.MachineEvidence{ClientCPU: .25},
		WirePerPayload:  1.31,
	}, report.NewEvidence(a, 10))
	require.Equal(t, report.Evidence{}, report.NewEvidence(stats.Account{}, 0), "nothing is infinite")
}

// A quantile of too few batches is the largest of them, and is not printed beside it.
func TestQuantilesOfFewBatches(t *testing.T) {
	for n, want := range map[int64]string{
		0:    "",
		1:    "closed loop · max 5.00 s a batch",
		2:    "closed loop · p50 1.00 s · max 5.00 s a batch",
		9:    "closed loop · p50 1.00 s · max 5.00 s a batch",
		10:   "closed loop · p50 1.00 s · p90 2.00 s · max 5.00 s a batch",
		99:   "closed loop · p50 1.00 s · p90 2.00 s · max 5.00 s a batch",
		100:  "closed loop · p50 1.00 s · p90 2.00 s · p99 3.00 s · max 5.00 s a batch",
		999:  "closed loop · p50 1.00 s · p90 2.00 s · p99 3.00 s · max 5.00 s a batch",
		1000: "closed loop · p50 1.00 s · p90 2.00 s · p99 3.00 s · p99.9 4.00 s · max 5.00 s a batch",
	} {
		r := report.Report{Plan: report.Plan{Workers: 1}, Result: report.Result{Outcome: report.OK, Batches: n}}
		r.Latency.BatchSeconds = report.Quantiles{P50: 1, P90: 2, P99: 3, P999: 4, Max: 5, Count: n}
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		if n == 0 {
			require.NotContains(t, text.String(), "latency")
			continue
		}
		require.Contains(t, text.String(), "latency   "+want+"\n", n)
	}
}

// A process that pushed nothing, as verify does, has no rates and no latency.
func TestNothingPushedHasNoRates(t *testing.T) {
	r := report.Report{Plan: report.Plan{Workers: 4, Rows: 20_000}, Result: report.Result{Outcome: report.OK, Rows: 20_000, Batches: 7}}
	r.Verify = report.Verify{Mode: "full", Ran: true, OK: true, ExpectedRows: 20_000, FoundRows: 20_000}
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.True(t, strings.HasPrefix(text.String(), "ok: 20,000 rows\n"), text.String())
	require.NotContains(t, text.String(), "/s")
	require.NotContains(t, text.String(), "time ")
	require.NotContains(t, text.String(), "p50")

	r.Run = report.Run{Resumed: true, ResumedRows: 20_000}
	text.Reset()
	require.NoError(t, r.WriteText(&text))
	require.True(t, strings.HasPrefix(text.String(), "ok: 20,000 rows, 0 of them now\n"), text.String())
}

func TestNoMoreDistinctRowsThanRows(t *testing.T) {
	r := report.Report{Plan: report.Plan{Workers: 1, DistinctRows: 2000, Distinct: 1 << 20}, Result: report.Result{Outcome: report.OK, Rows: 500}}
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "256.0 KiB distinct in 500 rows", "a run by duration that ended early")
}
