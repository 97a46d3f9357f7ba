package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/terapush/terapush/internal/push"
)

// caught holds the first signal.
type caught struct{ first atomic.Value }

// number returns the signal's number, SIGINT's if there was none.
func (c *caught) number() int {
	if s, ok := c.first.Load().(syscall.Signal); ok {
		return int(s)
	}
	return int(syscall.SIGINT)
}

// stop has the two ways of stopping. The first signal closes drain: batches on their way are finished and saved. The
// second ends hard, which closes the connections.
type stop struct {
	hard  context.Context
	drain <-chan struct{}
}

// soft returns a context that ends with the first signal.
func (s stop) soft() (ctx context.Context, cancel func()) {
	ctx, end := push.Until(s.hard, s.drain, context.Canceled)
	return ctx, func() { end(nil) }
}

// echo is how long after the first signal another one counts as the same: timeout(1) signals a process and then its
// group.
const echo = 250 * time.Millisecond

// secondSignal waits for a second signal, and returns false if the context ends before.
func (a *app) secondSignal(ctx context.Context) bool {
	for first := time.Now(); ; {
		select {
		case <-a.Signals:
			if time.Since(first) > echo {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

// stopping turns signals into a stop, until it is released.
func (a *app) stopping(ctx context.Context) (s stop, release func()) {
	hard, cancel := context.WithCancelCause(ctx)
	drain := make(chan struct{})
	go func() {
		select {
		case sig := <-a.Signals:
			a.signal.first.CompareAndSwap(nil, sig)
			fmt.Fprintf(a.terminal, "%s: finishing the batches in flight; a second signal closes the connections\n", sig)
			close(drain)
		case <-hard.Done():
			return
		}
		if a.secondSignal(hard) {
			cancel(errors.New("a second signal closed the connections"))
		}
	}()
	return stop{hard: hard, drain: drain}, func() { cancel(nil) }
}
