package stats_test

import (
	"maps"
	"sync/atomic"
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
		line := stats.StartTimeline(start, nil, c.Snapshot)
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

func TestTimelineOfAShortRun(t *testing.T) {
	interval, moments := lasting(t, 700*time.Millisecond)
	require.EqualValues(t, 1, interval)
	require.Equal(t, []stats.Moment{{At: 0.7, Phase: "done", Rows: 400, PayloadBytes: 4000}}, moments)
}

func TestTimeline(t *testing.T) {
	interval, moments := lasting(t, 3500*time.Millisecond)
	require.EqualValues(t, 1, interval)
	require.Len(t, moments, 4)
	for i, m := range moments[:3] {
		require.InDelta(t, 1.3+float64(i), m.At, 1e-9)
		require.Equal(t, "load", m.Phase)
		require.InDelta(t, 1000*float64(i+1), m.Rows, 100, "at the end of the interval, without earlier processes")
	}
	require.Equal(t, stats.Moment{At: 3.5, Phase: "done", Rows: 3200, PayloadBytes: 32_000}, moments[3])
}

// However long a run is, its timeline is evenly spaced and holds less than 600 moments, the last of which is the end.
func TestTimelineIsBounded(t *testing.T) {
	for seconds, want := range map[int]float64{599: 1, 600: 2, 601: 2, 1250: 4, 6000: 16} {
		interval, moments := lasting(t, time.Duration(seconds)*time.Second)
		require.Equal(t, want, interval, "%d s", seconds)
		require.Less(t, len(moments), 600)
		require.Greater(t, len(moments), 290)
		last := len(moments) - 1
		require.Equal(t, "done", moments[last].Phase)
		require.InDelta(t, seconds, moments[last].At, 1e-9)
		for i, m := range moments[1:last] {
			require.InDelta(t, interval, m.At-moments[i].At, 1e-9, "%d s, moment %d", seconds, i)
		}
	}
}

// A moment is bound by what most of its own interval was lost to, however many moments were put together, and every
// second is sampled.
func TestMomentsAreBound(t *testing.T) {
	for seconds, want := range map[int]float64{4: 1, 1000: 2} {
		synctest.Test(t, func(t *testing.T) {
			lost, samples := map[event.Limit]float64{}, 0
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
			line := stats.StartTimeline(start, sample, func() event.Snapshot {
				return event.Snapshot{At: time.Now(), LimitSeconds: maps.Clone(lost)}
			})
			time.Sleep(time.Duration(seconds)*time.Second + time.Millisecond)
			synctest.Wait()
			interval, all := line.Stop()
			require.Equal(t, seconds, samples, "every second, however rare moments are")
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

// The sampler reads a snapshot a second and nothing else.
func TestTimelineReadsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		line := stats.StartTimeline(time.Now(), nil, func() event.Snapshot {
			read.Add(1)
			return event.Snapshot{At: time.Now()}
		})
		time.Sleep(10*time.Second + 1)
		require.EqualValues(t, 10, read.Load())
		line.Stop()
		require.EqualValues(t, 11, read.Load())
	})
}
