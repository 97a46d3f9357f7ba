package retry

import (
	"log/slog"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Outage is the time in which no attempt of a run, by any worker, finds the server: a restart or a failover. It is bounded
// by time, since eight attempts are over in some twenty seconds. A batch that fails while others succeed, as one whose
// size the server answers by closing the connection, is counted by number all the same. It is safe for concurrent use; nil
// is never away.
type Outage struct {
	Most time.Duration // without one answer; 0: an outage is not waited for
	Log  *slog.Logger

	mu       sync.Mutex
	answered time.Time // when the newest attempt that succeeded had begun
	since    time.Time // zero unless the server is away
	logged   time.Time
}

const logEvery = time.Minute

// Answered ends the outage: a batch that was sent at began is acknowledged, or a query that was asked then is answered. An
// answer to what was sent before the server went away may be counted after the first failure, and is no sign that the
// server is there. Nor is the answer to what became of a batch that was cut off: the server may fall over the same batch
// again.
func (o *Outage) Answered(began time.Time) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if began.After(o.answered) {
		o.answered = began
	}
	if !o.since.IsZero() && !began.Before(o.since) {
		o.Log.Info("the server is back", "after", time.Since(o.since).Round(time.Second))
		o.since = time.Time{}
	}
}

// lasts reports whether an attempt failed because the server is away, and whether it was away for too long. failed is when
// the batch failed the last time, zero before the first; if an attempt that began since then succeeded, the server is there.
func (o *Outage) lasts(v loader.Verdict, err error, failed *time.Time) (away, over bool) {
	if o == nil || o.Most <= 0 || !unreachable(v) {
		return false, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	there := !failed.IsZero() && !o.answered.Before(*failed)
	*failed = now
	if there {
		return false, false
	}
	switch {
	case o.since.IsZero():
		o.since, o.logged = now, now
		o.Log.Warn("the server is away: waiting for it", "most", o.Most, "error", err)
	case now.Sub(o.since) >= o.Most:
		return true, true
	case now.Sub(o.logged) >= logEvery:
		o.logged = now
		o.Log.Warn("the server is still away", "since", now.Sub(o.since).Round(time.Second), "error", err)
	}
	return true, false
}

// Left returns how much of Most is left: all of it while the server is there.
func (o *Outage) Left() time.Duration {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return o.Most
	}
	return max(o.Most-time.Since(o.since), 0)
}

// unreachable reports whether an attempt did not find a server that takes it.
func unreachable(v loader.Verdict) bool {
	return v.Class == loader.ClassConnection || v.Class == loader.ClassShutdown || v.Class == loader.ClassTimeout && v.SessionDead
}
