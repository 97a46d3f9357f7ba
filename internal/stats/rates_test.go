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

func TestNoRatesBeforeTheLoad(t *testing.T) {
	var tracker stats.Tracker
	s := load(0, 0, 1000)
	s.Phase = event.Fill
	require.Zero(t, tracker.Observe(s))
	r := tracker.Observe(load(1, 0, 1000))
	require.False(t, r.ETAKnown, "nothing is acknowledged yet")
}

func TestConstantSpeed(t *testing.T) {
	var tracker stats.Tracker
	const planned, speed = 100_000, 500 // 200 s
	for second := 1.0; second <= 200; second++ {
		r := tracker.Observe(load(second, int64(second*speed), planned))
		require.InDelta(t, speed, r.Rows, 1e-6)
		require.InDelta(t, speed*100, r.Bytes, 1e-4)
		require.InDelta(t, speed, r.OverallRows, 1e-6)
		require.True(t, r.ETAKnown)
		require.InDelta(t, 200-second, r.ETA.Seconds(), 0.001)
	}
}

// Batches are acknowledged in lumps: 16 workers whose batches take 5 s each.
func TestETAWithinAFifthAfterATenth(t *testing.T) {
	var tracker stats.Tracker
	const planned = 16 * 1000 * 60 // 300 s
	for tick := 1; tick < 4*300; tick++ {
		second := float64(tick) / 4
		rows := int64(second/5) * 16 * 1000
		r := tracker.Observe(load(second, rows, planned))
		if second >= 30 {
			require.True(t, r.ETAKnown)
			require.InDelta(t, 300-second, r.ETA.Seconds(), max(0.2*(300-second), 5.25), "after %v s", second)
		}
	}
}

func TestHalvingSpeed(t *testing.T) {
	var tracker stats.Tracker
	rows, r := int64(0), stats.Rates{}
	for second := 1.0; second <= 300; second++ {
		if second <= 150 {
			rows += 1000
		} else {
			rows += 500
		}
		r = tracker.Observe(load(second, rows, 300_000))
	}
	require.InDelta(t, 500, r.Rows, 1e-6)
	require.InDelta(t, 750, r.OverallRows, 1e-6)
	require.InDelta(t, 150, r.ETA.Seconds(), 0.001, "the old speed is forgotten after a minute")
}

func TestStall(t *testing.T) {
	var tracker stats.Tracker
	for second := 1.0; second <= 100; second++ {
		tracker.Observe(load(second, int64(second*1000), 1_000_000))
	}
	var r stats.Rates
	for second := 101.0; second <= 200; second++ {
		r = tracker.Observe(load(second, 100_000, 1_000_000))
		require.GreaterOrEqual(t, r.ETA, time.Duration(0))
		if second >= 110 {
			require.Zero(t, r.Rows)
		}
	}
	require.False(t, r.ETAKnown, "at no speed there is no end")
	require.InDelta(t, 500, r.OverallRows, 1e-6)
}

func TestResumedRowsAreNoSpeed(t *testing.T) {
	var tracker stats.Tracker
	for second := 1.0; second <= 10; second++ {
		s := load(second, 600_000+int64(second*1000), 1_000_000)
		s.ResumedRows, s.ResumedBytes = 600_000, 60_000_000
		r := tracker.Observe(s)
		require.InDelta(t, 1000, r.Rows, 1e-6)
		require.InDelta(t, 1000, r.OverallRows, 1e-6)
		require.InDelta(t, 400-second, r.ETA.Seconds(), 0.001)
	}
}

func TestNoETAWithoutAPlan(t *testing.T) {
	var tracker stats.Tracker
	r := tracker.Observe(load(5, 5000, 0))
	require.False(t, r.ETAKnown)
	require.InDelta(t, 1000, r.Rows, 1e-6)
}

func TestETAEnds(t *testing.T) {
	var tracker stats.Tracker
	r := tracker.Observe(load(5, 1200, 1000))
	require.True(t, r.ETAKnown)
	require.Zero(t, r.ETA, "never negative")

	r = new(stats.Tracker).Observe(load(5, 1, 1<<60))
	require.False(t, r.ETAKnown, "a million years is no answer")

	s := load(5, 500, 1000)
	s.Phase = event.Verify
	require.False(t, tracker.Observe(s).ETAKnown, "verifying is not loading")
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
