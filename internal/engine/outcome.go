package engine

import (
	"sync"

	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// outcome is what has become of a run so far.
type outcome struct {
	mu     sync.Mutex // while workers run
	failed error      // the first
	broken bool       // failed concerns all batches: no more are begun
	result Result
}

// keepError keeps the first error; the run continues without the batch.
func (o *outcome) keepError(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = err
	}
}

func (o *outcome) breakOff() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = true
}

func (o *outcome) isBroken() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.broken
}

// keepUndeleted counts a committed group whose objects could not be removed.
func (o *outcome) keepUndeleted(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result.UndeletedGroups++
	if o.result.DeleteErr == nil {
		o.result.DeleteErr = err
	}
}

// abandon counts batches that get no further attempt. Those that were applied although the answer was an error are
// counted by the attempt's event.
func (r *run) abandon(first, batches int64, applied loader.Applied) {
	if applied == loader.Yes {
		return
	}
	outcome := event.NotApplied
	if applied == loader.Unknown {
		outcome = event.Unknown
	}
	for range batches {
		r.Stats.GiveUp(outcome)
	}
	if applied != loader.Unknown {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range batches {
		r.result.Unknown = append(r.result.Unknown, first+n)
	}
}
