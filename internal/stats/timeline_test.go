package stats_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// lasting is the timeline of a load of a thousand rows a second that goes on for so long.
func lasting(t *testing.T, d time.Duration) (interval float64, moments []stats.Moment) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := stats.New(stats.Options{Start: start})
		c.Resume(stats.Earlier{Rows: 5000, PayloadBytes: 50_000})
		time.Sleep(300 * time.Millisecond) // a preflight
		line := stats.StartTimeline(start, nil, c.Progress)
		c.Phase(event.Fill) // which takes no time
		c.Phase(event.Load)
		for time.Since(start) < d {
			time.Sleep(min(100*time.Millisecond, d-time.Since(start)))
			c.Add(applied(100, 0.1))
		}
		c.Phase(event.Done)
		time.Sleep(1500 * time.Millisecond) // what comes after the end is not the run
		interval, moments = line.Stop()
		again, same := line.Stop()
		require.Equal(t, interval, again)
		require.Equal(t, moments, same)
		synctest.Wait()
	})
	return interval, moments
}

func TestTimeline(t *testing.T) {
	interval, moments := lasting(t, 700*time.Millisecond)
	require.EqualValues(t, 1, interval)
	require.Equal(t, []stats.Moment{
		{At: 0.3, Phase: "prepare"},
		{At: 0.7, Phase: "load", Rows: 400, PayloadBytes: 4000},
		{At: 0.7, Phase: "done", Rows: 400, PayloadBytes: 4000},
	}, moments)

	_, moments = lasting(t, 3500*time.Millisecond)
	require.Len(t, moments, 5)
	for i, m := range moments[1:3] {
		require.InDelta(t, 1.3+float64(i), m.At, 1e-9)
		require.Equal(t, "load", m.Phase)
		require.InDelta(t, 1000*float64(i+1), m.Rows, 100, "at the end of the interval, without earlier processes")
	}
	end := stats.Moment{At: 3.5, Phase: "load", Rows: 3200, PayloadBytes: 32_000}
	require.Equal(t, end, moments[3], "from 2.3 on: what ends 0.2 s behind another of the phase is put together with it")
	end.Phase = "done"
	require.Equal(t, end, moments[4])
}

// Every interval is of one phase, by its name, and so is what the workers lost in it, which is known a little later.
func TestTimelineOfPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var lost stats.Lost
		c := stats.New(stats.Options{Start: start, Lost: func() stats.Lost { return lost }})
		line := stats.StartTimeline(start, nil, c.Progress)
		during := func(p event.Phase, ms int) {
			c.Phase(p)
			time.Sleep(time.Duration(ms) * time.Millisecond)
		}
		during(event.Fill, 20)
		during(event.Load, 1230)
		c.Add(applied(7, 0.1))
		c.Phase(event.Finish)
		lost.Seconds = map[event.Limit]float64{event.LimitTarget: 1}
		during(event.Finish, 10)
		during(event.Verify, 250)
		c.Phase(event.Done)
		_, moments := line.Stop()
		require.Equal(t, []stats.Moment{
			{At: 0.02, Phase: "fill"},
			{At: 1.25, Phase: "load", Rows: 7, PayloadBytes: 70, BoundBy: "target"},
			{At: 1.26, Phase: "finish", Rows: 7, PayloadBytes: 70},
			{At: 1.51, Phase: "verify", Rows: 7, PayloadBytes: 70},
			{At: 1.51, Phase: "done", Rows: 7, PayloadBytes: 70},
		}, moments)
	})
}

// A run that goes back to its load again and again has a bounded timeline, too.
func TestTimelineOfManyPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := stats.New(stats.Options{Start: start})
		line := stats.StartTimeline(start, nil, c.Progress)
		for range 700 {
			c.Phase(event.Load)
			time.Sleep(400 * time.Millisecond)
			c.Phase(event.Finish)
			time.Sleep(300 * time.Millisecond)
		}
		c.Phase(event.Done)
		_, moments := line.Stop()
		require.Less(t, len(moments), 600)
	})
}

// However long a run is, its timeline is evenly spaced and holds less than 600 moments, the last of which is the end.
func TestTimelineIsBounded(t *testing.T) {
	for seconds, want := range map[int]float64{597: 1, 600: 2, 1250: 4} {
		interval, moments := lasting(t, time.Duration(seconds)*time.Second)
		require.Equal(t, want, interval, "%d s", seconds)
		require.Less(t, len(moments), 600)
		require.Greater(t, len(moments), 290)
		last := len(moments) - 1
		require.Equal(t, "done", moments[last].Phase)
		require.InDelta(t, seconds, moments[last].At, 1e-9)
		require.Equal(t, "prepare", moments[0].Phase)
		for i, m := range moments[2 : last-1] { // but for the first and the last of the load
			require.InDelta(t, interval, m.At-moments[i+1].At, 1e-9, "%d s, moment %d", seconds, i)
		}
	}
}

// A moment is bound by what most of its own interval was lost to, however many moments were put together, and every
// second is sampled.
func TestMomentsAreBound(t *testing.T) {
	for seconds, want := range map[int]float64{4: 1, 1000: 2} {
		synctest.Test(t, func(t *testing.T) {
			lost, samples, reads := map[event.Limit]float64{}, 0, 0
			sample := func() {
				samples++
				switch {
				case samples <= seconds/2:
					lost[event.LimitTarget] += 2
					lost[event.LimitClient]++
				case samples <= seconds*3/4:
					lost[event.LimitRate]++
				}
			}
			start := time.Now()
			line := stats.StartTimeline(start, sample, func() ([]event.Snapshot, event.Snapshot) {
				reads++
				return nil, event.Snapshot{At: time.Now(), Phase: event.Load, LimitSeconds: maps.Clone(lost)}
			})
			time.Sleep(time.Duration(seconds)*time.Second + time.Millisecond)
			synctest.Wait()
			interval, all := line.Stop()
			require.Equal(t, seconds, samples, "every second, however rare moments are")
			require.LessOrEqual(t, reads, seconds+1, "one snapshot a second, and the last")
			require.Equal(t, want, interval)
			counted := map[string]float64{}
			for _, m := range all {
				counted[m.BoundBy] += interval
			}
			require.InDelta(t, seconds/2, counted["target"], interval)
			require.InDelta(t, seconds/4, counted["limit"], interval)
			require.NotContains(t, counted, "client-cpu")
			require.Empty(t, all[len(all)-1].BoundBy, "no worker had any time")
		})
	}
}
