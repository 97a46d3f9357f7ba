package results_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

// records reads files of testdata. Tests of the command line read them, too:
//
//   - four-methods.jsonl: 44 cases of Databend with published figures, each pushed once; one failed, one was cut by its
//     limit, two were skipped and two never begun.
//   - workers.jsonl: PostgreSQL with and without waiting for the disk by workers, 5 repeats and a warm-up. In
//     workers-after.jsonl a newer version is slower with 8 workers.
//   - two-parts.jsonl: parts with other axes and other guarantees; a proof failed, and another was not asked for.
//   - run-4.json, run-8.json: reports of single pushes.
func records(t testing.TB, names ...string) []results.Record {
	t.Helper()
	var all []results.Record
	for _, name := range names {
		r, err := results.Read(filepath.Join("testdata", name))
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

func fixture(t testing.TB, name string) results.Record {
	t.Helper()
	return records(t, name)[0]
}

func everything(t testing.TB) []results.Record {
	t.Helper()
	return records(t, "four-methods.jsonl", "workers.jsonl", "two-parts.jsonl", "run-4.json", "run-8.json")
}

func rendered(t testing.TB, f results.Format, of []results.Record) string {
	t.Helper()
	return shown(t, f, results.Tables(of)...)
}

func shown(t testing.TB, f results.Format, tables ...results.Table) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, f.Write(&b, tables))
	return b.String()
}

// pushed is the report of a push of 1 GiB in rows of 512 bytes at a rate.
func pushed(rate float64) *report.Report {
	const bytes, rows = 1 << 30, 1 << 21
	return &report.Report{
		Schema: report.Schema,
		Target: report.Target{
			Backend: "postgres", URL: "postgres://anna@db1.shop.internal:5432/orders", Server: "PostgreSQL 17.2",
			Endpoint: "10.1.2.3:5432", Table: "sales.archive",
			Settings: map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"},
		},
		Plan: report.Plan{
			Method: "copy", Format: "pgbinary", Delivery: "exactly-once", Dataset: "documents", Seed: 1, Rows: rows,
			Workers: 4, BatchRows: 16384, Options: map[string]string{},
		},
		Result: report.Result{
			Outcome: report.OK, Rows: rows, PayloadBytes: bytes, Seconds: rows / rate, RowsPerSecond: rate, BytesPerSecond: rate * 512,
		},
		Latency: report.Latency{Loop: report.Closed},
		Client:  report.Client{Cores: 2, LoadSeconds: 0.31},
		Stored:  report.Stored{BytesPerRow: 614.4},
		Verify:  report.Verify{Mode: "count", Ran: true, OK: true, ExpectedRows: rows, FoundRows: rows},
	}
}

// sweep is a record of one part along one axis, with a push for each rate of a value.
func sweep(axis string, values []string, rates ...[]float64) results.Record {
	r := results.Record{Head: results.Head{Name: "s", Parts: []results.Part{{
		Axes: []results.Axis{{Name: axis, Values: values}}, Cells: len(values),
	}}}}
	for cell, v := range values {
		for repeat, rate := range rates[cell] {
			r.Entries = append(r.Entries, results.Entry{
				Cell: cell, Repeat: repeat, Status: results.Measured, Report: pushed(rate), Settings: results.Settings{{Axis: axis, Value: v}},
			})
		}
	}
	return r
}

// grid is a record of one part with a push for every combination of the axes' values, at a rate for each.
func grid(axes []results.Axis, rate func(cell int) float64) results.Record {
	r := results.Record{Head: results.Head{Name: "s", Parts: []results.Part{{Axes: axes, Cells: results.Combinations(axes)}}}}
	for cell := range results.Combinations(axes) {
		r.Entries = append(r.Entries, results.Entry{
			Cell: cell, Status: results.Measured, Report: pushed(rate(cell)), Settings: results.Combination(axes, cell),
		})
	}
	return r
}

// large is a sweep of 10 methods, 10 batch sizes and 5 numbers of workers.
func large() results.Record {
	axes := []results.Axis{{Name: "method"}, {Name: "batch-rows"}, {Name: "workers", Values: strings.Fields("1 2 4 8 16")}}
	for n := range 10 {
		axes[0].Values = append(axes[0].Values, fmt.Sprint("method-", n))
		axes[1].Values = append(axes[1].Values, fmt.Sprint(1000<<n))
	}
	return grid(axes, func(cell int) float64 { return float64(1000 * (cell/50 + 1) * (cell/5%10 + 2) * (cell%5 + 1)) })
}

// drawn are tables with all that a page can show: published figures and a case that failed in the first, and in both
// the phases, the timeline and the ceiling of a push.
func drawn(t testing.TB) []results.Table {
	t.Helper()
	tables := results.Tables(records(t, "four-methods.jsonl", "workers.jsonl"))
	for i := range tables {
		for _, p := range tables[i].Points {
			if p.Typical != nil {
				watched(p.Typical)
			}
		}
	}
	return tables
}

// watched adds a timeline with a stall, the states of workers, and what calibrate found.
func watched(r *report.Report) {
	r.Phases = report.Phases{Prepare: .8, Fill: 3.1, Load: 46, Finish: 1.5, Verify: 6}
	r.WorkerSeconds = map[string]float64{"send": 21, "wait_ack": 40, "wait_buffer": 2, "connect": .4, "backoff": 3, "idle": 4}
	r.BoundBy.Evidence.Ceiling = 600e6
	rows, retries := 0.0, int64(0)
	for second := range 58 {
		phase := "load"
		switch {
		case second < 4:
			phase = []string{"", "prepare", "fill", "fill"}[second]
		case second >= 50:
			phase = "verify"
		case second > 25 && second < 30:
			rows += .15 * r.Result.RowsPerSecond
			retries++
		default:
			rows += r.Result.RowsPerSecond
		}
		r.Timeline.Moments = append(r.Timeline.Moments, report.Moment{At: float64(second + 1), Phase: phase, Rows: int64(rows), Retries: retries})
	}
	r.Timeline.Moments = append(r.Timeline.Moments, report.Moment{At: 58, Phase: "done", Rows: int64(rows), Retries: retries})
}

func one(t *testing.T, records ...results.Record) results.Table {
	t.Helper()
	tables := results.Tables(records)
	require.Len(t, tables, 1)
	return tables[0]
}

func warns(t *testing.T, table results.Table, text string) {
	t.Helper()
	require.Contains(t, strings.Join(table.Warnings, "\n"), text)
}
