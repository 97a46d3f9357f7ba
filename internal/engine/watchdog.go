package engine

import (
	"context"
	"time"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// A worker without progress for a minute is logged: people have waited sixty hours for loaders that printed nothing.
const (
	stalledAfter  = time.Minute
	watchInterval = 5 * time.Second
)

// watched is a worker's activity and when it last changed.
type watched struct {
	activity stats.Activity
	since    time.Time
	logged   bool
}

// watch logs once for each stall what the worker waits for.
func (r *run) watch(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	seen := make([]watched, r.Workers)
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

// stalled updates the activity and returns true once for each stall. A body that is still being read is no stall,
// however long it takes.
func (s *watched) stalled(a stats.Activity, now time.Time) bool {
	if last := s.activity; last.State != a.State || last.Batch != a.Batch || last.Sent != a.Sent {
		*s = watched{activity: a, since: now}
	}
	if s.logged || a.Batch < 0 || a.State == event.WaitRate || now.Sub(s.since) < stalledAfter {
		return false
	}
	s.logged = true
	return true
}
