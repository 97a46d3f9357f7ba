package sqlload

import (
	"context"
	"time"
)

// Poll is for loops that look again and again until something is over. It yields at once, and again after each pause.
// The first pause is first, each further one twice the one before, and none is longer than most; equal ones are
// constant. A body that returns or breaks ends the loop.
//
// Poll yields at least once, even if ctx has ended. It ends by itself only when ctx ends in a pause, so what follows a
// loop without break is for ctx.Err().
func Poll(ctx context.Context, first, most time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		for pause := first; yield() && Wait(ctx, pause) == nil; {
			pause = min(2*pause, most)
		}
	}
}

// Wait sleeps, or returns the error of ctx when that ends.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
