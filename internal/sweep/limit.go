package sweep

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// preparing is the time that a push under a limit has until its rows move: for connecting, for making the table anew and
// for filling its buffers. It is no part of what is measured, and is bounded so that a server that never answers does not
// hold up the sweep.
const preparing = 10 * time.Minute

// clock ends one push in order: when the user asks to, when rows have moved for the limit, or when they do not begin to.
type clock struct {
	drain chan struct{} // closed when the push is to end
	why   string        // which time passed; "" for none. It may be read after stop.
	moves chan func() bool
	stop  func() // ends the clock, and returns when why is settled
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

// wait reports whether the push is to end; it is not when it has ended by itself.
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
				passed = nil // all rows are in, and their proof takes what it takes
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
