package sweep

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// preparing bounds, together with the limit, how long a push may connect, make its table and fill its buffers. That
// time is not measured; it is bounded so that a server that never answers does not stall the sweep.
const preparing = 10 * time.Minute

// clock ends one push in order: when the sweep is stopped, when rows have moved for the limit, or when they do not
// begin to.
type clock struct {
	drain chan struct{} // closed to end the push
	why   string        // which time passed, "" for none; valid after stop
	moves chan func() bool
	stop  func()
}

func (r *runner) startClock(ctx context.Context) *clock {
	c := &clock{drain: make(chan struct{}), moves: make(chan func() bool, 1)}
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if c.wait(ctx, r.Drain, r.Plan.Limit) {
			close(c.drain)
		}
	})
	c.stop = func() { cancel(); waiting.Wait() }
	return c
}

// begin is called when rows begin to move.
func (c *clock) begin(moving func() bool) {
	select {
	case c.moves <- moving:
	default: // more than once
	}
}

// wait reports whether the push has to end; false if it has ended.
func (c *clock) wait(ctx context.Context, stop <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit + preparing)
	defer timer.Stop()
	var passed <-chan time.Time
	if limit > 0 {
		passed = timer.C
	}
	moving, moves := func() bool { return true }, c.moves
	why := fmt.Sprintf("%s for preparing and filling and the limit of %s passed", preparing, limit)
	for {
		select {
		case moving = <-moves:
			if moves = nil; limit > 0 {
				timer.Reset(limit)
			}
			why = fmt.Sprintf("the limit of %s passed", limit)
		case <-passed:
			if !moving() {
				passed = nil // all rows are in; their proof is not limited
				continue
			}
			c.why = why
			return true
		case <-stop:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
