// Package retry decides how long to wait between two attempts, and repeats queries whose answers were lost.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/terapush/terapush/pkg/loader"
)

// Policy bounds the attempts after the first. The waits grow from a quarter of a second to half a minute, with jitter,
// so that workers that failed together do not retry together.
type Policy struct {
	Retries int
	// Outage bounds by time the attempts that find no server; nil counts them like the others.
	Outage *Outage
}

const (
	firstWait = 250 * time.Millisecond
	longest   = 30 * time.Second
)

// Ask calls f until it succeeds, until a retry cannot help, or until no attempt is left. It calls lost with every error
// that a retry follows, unless the server is away. f starts over each time and must drop a partial answer. A statement
// that took too long is not retried: it would take as long again. The error has classify's verdict.
func (p Policy) Ask(ctx context.Context, classify func(error) loader.Verdict, lost func(error), f func(context.Context) error) error {
	for waits := p.Waits(); ; {
		began := time.Now()
		err := f(ctx)
		if err == nil {
			p.Outage.Answered(began)
			return nil
		}
		v := classify(err)
		if ctx.Err() != nil {
			return loader.Judged(err, v)
		}
		if !v.Retry || v.Class == loader.ClassTimeout && !v.SessionDead || !waits.Failed(v, err) || !waits.Wait(ctx, v.After) {
			return loader.Judged(err, v)
		}
		if !waits.Away {
			lost(err)
		}
	}
}

// Waits returns the waits of one batch.
func (p Policy) Waits() *Waits {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = firstWait, longest, 2
	b.Reset()
	return &Waits{left: p.Retries, outage: p.Outage, next: b}
}

// Waits are those between the attempts of one batch.
type Waits struct {
	Away bool // the newest wait was for a server that is away, which Outage has logged

	left   int
	outage *Outage
	failed time.Time // of Outage.lasts
	next   *backoff.ExponentialBackOff
}

// Failed notes that an attempt failed with err, and reports whether there may be another one.
func (w *Waits) Failed(v loader.Verdict, err error) bool {
	away, over := w.outage.lasts(v, err, &w.failed)
	if w.Away = away; over || !away && w.left <= 0 {
		return false
	}
	if !away {
		w.left--
	}
	return true
}

// Wait sleeps before the next attempt, at least as long as the server asked for. Of a server that is away the last
// attempt begins when the outage has lasted for its most, and not a wait later. Wait returns false if the context ends.
func (w *Waits) Wait(ctx context.Context, atLeast time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	pause := max(w.next.NextBackOff(), atLeast)
	if w.Away {
		pause = min(pause, w.outage.Left())
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
