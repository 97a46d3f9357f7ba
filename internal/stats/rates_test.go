package stats_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// load is the snapshot of a load, so many seconds after its start.
func load(seconds float64, rows, planned int64) event.Snapshot {
	return event.Snapshot{
		At: time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second))), Phase: event.Load,
		PhaseSeconds: map[event.Phase]float64{event.Load: seconds},
		Rows:         rows, PayloadBytes: 100 * rows, PlannedRows: planned, PlannedBytes: 100 * planned,
	}
}

func TestFirstRates(t *testing.T) {
	fill, verify, bytes := load(0, 0, 1000), load(5, 500, 1000), load(5, 500, 0)
	fill.Phase, verify.Phase, bytes.PlannedBytes = event.Fill, event.Verify, 100_000
	for name, c := range map[string]struct {
		s     event.Snapshot
		rows  float64
		eta   time.Duration
		known bool
	}{
		"before the load":             {fill, 0, 0, false},
		"nothing is acknowledged yet": {load(1, 0, 1000), 0, 0, false},
		"halfway":                     {load(5, 500, 1000), 100, 5 * time.Second, true},
		"halfway of a plan in bytes":  {bytes, 100, 5 * time.Second, true},
		"no plan":                     {load(5, 5000, 0), 1000, 0, false},
		"more than was planned":       {load(5, 1200, 1000), 240, 0, true},
		"a million years":             {load(5, 1, 1<<60), 0.2, 0, false},
		"verifying is not loading":    {verify, 100, 0, false},
	} {
		r := new(stats.Tracker).Observe(c.s)
		require.InDelta(t, c.rows, r.Rows, 1e-6, name)
		require.Equal(t, c.known, r.ETAKnown, name)
		require.Equal(t, c.eta, r.ETA, name)
	}
}

// Rows of earlier processes are no speed.
func TestConstantSpeed(t *testing.T) {
	const planned, speed = 100_000, 500
	for _, resumed := range []int64{0, 60_000} {
		var tracker stats.Tracker
		end := float64(planned-resumed) / speed
		for second := 1.0; second <= end; second++ {
			s := load(second, resumed+int64(second*speed), planned)
			s.ResumedRows, s.ResumedBytes = resumed, 100*resumed
			r := tracker.Observe(s)
			require.InDelta(t, speed, r.Rows, 1e-6)
			require.InDelta(t, speed*100, r.Bytes, 1e-4)
			require.InDelta(t, speed, r.OverallRows, 1e-6)
			require.InDelta(t, speed*100, r.OverallBytes, 1e-4)
			require.True(t, r.ETAKnown)
			require.InDelta(t, end-second, r.ETA.Seconds(), 0.001)
		}
	}
}

// The old speed is forgotten after ten seconds, and by the ETA after a minute. At no speed there is no end.
func TestChangedSpeed(t *testing.T) {
	var tracker stats.Tracker
	rows, r := int64(0), stats.Rates{}
	run := func(from, to float64, speed int64) {
		for second := from + 1; second <= to; second++ {
			rows += speed
			r = tracker.Observe(load(second, rows, 300_000))
		}
	}
	run(0, 100, 1000)
	run(100, 110, 500)
	require.InDelta(t, 500, r.Rows, 1e-6)
	require.InDelta(t, (300_000-105_000)/(55_000.0/60), r.ETA.Seconds(), 0.001)
	run(110, 160, 500)
	require.InDelta(t, 130_000.0/160, r.OverallRows, 1e-6)
	require.InDelta(t, 340, r.ETA.Seconds(), 0.001)
	run(160, 170, 0)
	require.Zero(t, r.Rows)
	require.True(t, r.ETAKnown)
	run(170, 220, 0)
	require.False(t, r.ETAKnown)
}

func TestTrackerIsBounded(t *testing.T) {
	var tracker stats.Tracker
	var s event.Snapshot
	for tick := range 6000 { // ten minutes
		s = load(float64(tick+1)/10, int64(tick), 1_000_000)
		tracker.Observe(s)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.At = s.At.Add(time.Second)
		tracker.Observe(s)
	}))
}
