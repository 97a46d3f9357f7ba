package sweep

import (
	"context"
	"fmt"
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
	over  chan struct{}
	ended chan struct{}
}

func (r *runner) startClock(ctx context.Context) *clock {
	c := &clock{drain: make(chan struct{}), moves: make(chan func() bool, 1), over: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		if c.wait(ctx, r.Drain, r.Plan.Limit) {
			close(c.drain)
		}
	}()
	return c
}

// begin is told when rows begin to move.
func (c *clock) begin(moving func() bool) {
	select {
	case c.moves <- moving:
	default: // more than once
	}
}

// wait is true when the push is to end.
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
		case <-c.over:
			return false
		}
	}
}

// stop ends the clock, and returns when why is settled.
func (c *clock) stop() {
	close(c.over)
	<-c.ended
}
