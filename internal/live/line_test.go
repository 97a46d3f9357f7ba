package live_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

const (
	planned = 2_000_000 // rows
	rowSize = 520       // bytes of column data
)

// trace is a load whose speed is a function of the time since its start.
type trace struct {
	name    string
	speed   func(second int) int64 // rows acknowledged in that second
	seconds int                    // after which the trace is cut
	resumed int64                  // rows of earlier processes
	forTime bool                   // its end is a time
}

func constant() trace {
	return trace{name: "constant", seconds: 100, speed: func(int) int64 { return 10_000 }}
}

func traces() []trace {
	resume, forTime, stall := constant(), constant(), constant()
	resume.name, resume.seconds, resume.resumed = "resume", 80, 1_200_000
	forTime.name, forTime.seconds, forTime.forTime = "duration", 60, true
	stall.name, stall.seconds, stall.speed = "stall", 300, func(second int) int64 {
		if second >= 50 && second < 150 {
			return 0
		}
		return 10_000
	}
	return []trace{stall, resume, forTime}
}

// play gives the snapshots of a trace, one a second, and the rates that belong to them.
func (tr trace) play(show func(second int, s event.Snapshot, r stats.Rates)) {
	var tracker stats.Tracker
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := event.Snapshot{
		Phase: event.Load, Workers: 64, LastProgress: start,
		PlannedRows: planned, PlannedBytes: planned * rowSize,
		Rows: tr.resumed, PayloadBytes: tr.resumed * rowSize, ResumedRows: tr.resumed, ResumedBytes: tr.resumed * rowSize,
	}
	if tr.forTime {
		s.PlannedRows, s.PlannedBytes = 0, 0
	}
	for second := range tr.seconds {
		s.At = start.Add(time.Duration(second+1) * time.Second)
		s.BoundBy = event.LimitTarget
		s.PhaseSeconds = map[event.Phase]float64{event.Load: float64(second + 1)}
		if n := tr.speed(second); n > 0 {
			s.Rows, s.PayloadBytes, s.LastProgress = s.Rows+n, s.PayloadBytes+n*rowSize, s.At
		}
		if second == 40 {
			s.Retries = 3
		}
		show(second+1, s, tracker.Observe(s))
	}
}

func TestTraces(t *testing.T) {
	for _, tr := range traces() {
		t.Run(tr.name, func(t *testing.T) {
			var text strings.Builder
			last := -1.0
			tr.play(func(second int, s event.Snapshot, r stats.Rates) {
				percent, known := live.Percent(s)
				require.Equal(t, !tr.forTime, known)
				require.GreaterOrEqual(t, percent, last, "percent only grows")
				require.LessOrEqual(t, percent, 100.0)
				last = percent
				if second%10 == 0 {
					fmt.Fprintln(&text, live.Line(s, r, 0))
				}
			})
			golden.Equal(t, tr.name+".txt", text.String())
		})
	}
}

func TestPercentIsRoundedDown(t *testing.T) {
	for _, c := range []struct {
		rows, planned, bytes, plannedBytes int64
		want                               float64
		known                              bool
	}{
		{rows: 999_999, planned: 1_000_000, want: 99.9, known: true},
		{rows: 1_000_000, planned: 1_000_000, want: 100, known: true},
		{rows: 1_000_001, planned: 1_000_000, want: 100, known: true},
		{bytes: 1, plannedBytes: 3, want: 33.3, known: true},
		{rows: 7},
	} {
		got, known := live.Percent(event.Snapshot{
			Rows: c.rows, PlannedRows: c.planned, PayloadBytes: c.bytes, PlannedBytes: c.plannedBytes,
		})
		require.Equal(t, c.known, known)
		require.Equal(t, c.want, got)
	}
}

func TestLineFits(t *testing.T) {
	var text strings.Builder
	constant().play(func(second int, s event.Snapshot, r stats.Rates) {
		if second != 100 {
			return
		}
		for _, columns := range []int{40, 60, 79, 100, 120, 160} {
			fmt.Fprintln(&text, live.Line(s, r, columns))
		}
		s.MissingRows, s.LastProgress = 1_000_000, s.At.Add(-time.Minute) // it stands still
		for columns := 1; columns < 200; columns++ {
			require.LessOrEqual(t, len(live.Line(s, r, columns)), columns)
		}
	})
	golden.Equal(t, "columns.txt", text.String())
}

func TestLineOfEveryPhase(t *testing.T) {
	var text strings.Builder
	for _, p := range append(event.Phases(), event.Done) {
		s := event.Snapshot{
			BoundBy: event.LimitClient,
			At:      time.Unix(100, 0), LastProgress: time.Unix(99, 0), Phase: p, Workers: 4,
			PhaseSeconds: map[event.Phase]float64{p: 12, event.Load: 12},
			Rows:         planned, PlannedRows: planned, PayloadBytes: planned * rowSize, PlannedBytes: planned * rowSize,
		}
		if p == event.Stage || p == event.Commit {
			s.StoredBatches, s.StoredBytes = 123, planned*rowSize
		}
		if p == event.Prepare || p == event.Fill {
			s.Rows, s.PayloadBytes, s.PhaseSeconds[event.Load] = 0, 0, 0
		}
		fmt.Fprintln(&text, live.Line(s, new(stats.Tracker).Observe(s), 0))
		if p == event.Done { // interrupted
			s.Rows, s.PayloadBytes, s.MissingRows = s.Rows/2, s.PayloadBytes/2, 7
			fmt.Fprintln(&text, live.Line(s, new(stats.Tracker).Observe(s), 0))
		}
	}
	golden.Equal(t, "phases.txt", text.String())
}

func TestJSONLine(t *testing.T) {
	var text strings.Builder
	for _, tr := range traces() {
		tr.play(func(second int, s event.Snapshot, r stats.Rates) {
			if second == 20 || second == 140 {
				line := live.JSONLine(s, r)
				require.True(t, json.Valid(line))
				text.Write(line)
			}
		})
	}
	golden.Equal(t, "json.txt", text.String())
}
