package engine

import (
	"context"
	"time"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// A worker that has not moved for a minute is logged: people have waited sixty hours for loaders that printed nothing.
const (
	stalledAfter = time.Minute
	lookEvery    = 5 * time.Second
)

// sighting is since when a worker has been seen doing the same.
type sighting struct {
	activity stats.Activity
	since    time.Time
	logged   bool
}

// watch logs, once a stall, what the stalled worker waits for.
func (r *run) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	seen := make([]sighting, r.Workers)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for i, a := range r.Stats.Describe() {
				if seen[i].stalled(a, now) {
					r.Log.Warn("a worker is stalled", "worker", a.Worker, "activity", a.String())
				}
			}
		}
	}
}

// stalled compares what a worker does with the last sighting, and is true once when it becomes a stall. A body that is
// still being read is no stall, however long it takes.
func (s *sighting) stalled(a stats.Activity, now time.Time) bool {
	if last := s.activity; last.State != a.State || last.Batch != a.Batch || last.Sent != a.Sent {
		*s = sighting{activity: a, since: now}
	}
	if s.logged || a.Batch < 0 || a.State == event.WaitRate || now.Sub(s.since) < stalledAfter {
		return false
	}
	s.logged = true
	return true
}
