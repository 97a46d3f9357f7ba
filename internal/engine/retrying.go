package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// retrying returns the outermost layer: it sends a batch or a group until it is in, until no retry can help, or until
// none is left.
//
// After a lost answer or a lost session it asks the database before it sends again. Resolve ends the earlier session
// first: an attempt that still runs on the server could otherwise commit unnoticed.
//
// What is known of a batch is what is known of all its attempts together. Once one is unknown so is the batch, however
// certain the end of those after it is, until the database was asked.
func (d *deliverer) retrying(next loadFunc) loadFunc {
	return func(ctx context.Context, t *delivery) (loader.Ack, error) {
		waits := d.Retry.Waits()
		applied := loader.No // of all attempts so far
		if t.unresolved && d.Contract.Dedup == loader.DedupNone && !d.upload {
			applied = loader.Unknown // and without deduplication the database cannot be asked
		}
		if d.begunEarlier(t) {
			found, err := d.resolveEarlier(ctx, t, waits)
			if err != nil {
				return loader.Ack{}, d.giveUp(t, found, err)
			}
			if found == loader.Yes {
				return loader.Ack{Rows: t.Rows, AlreadyApplied: true}, nil
			}
			applied = found
		}
		for {
			if err := d.announce(t); err != nil {
				return loader.Ack{}, d.giveUp(t, applied, err)
			}
			ack, err := next(ctx, t)
			if err == nil {
				return ack, nil
			}
			v := d.classify(err)
			applied = combined(applied, v.Applied)
			if applied == loader.Yes || isRowsError(err) && !d.upload || isNeverSent(err) {
				return loader.Ack{}, d.giveUp(t, applied, err)
			}
			if d.mustResolve(v) {
				found, unanswered := d.resolveWithRetries(ctx, t, waits)
				switch {
				case isUndecided(unanswered): // that is an answer, and about every attempt
					applied, err = loader.Unknown, fmt.Errorf("%w; %w", err, unanswered)
				case unanswered != nil: // what is certainly not in stays so, whether or not the database answers
					err = fmt.Errorf("%w; %w", err, unanswered)
				case found == loader.Yes:
					return loader.Ack{Rows: t.Rows, AlreadyApplied: true}, nil
				default:
					applied = found
				}
			}
			if !v.Retry || !d.maySendAgain(applied) || !d.pause(waits, v.After) {
				return loader.Ack{}, d.giveUp(t, applied, err)
			}
			message := "sending again"
			if applied == loader.Unknown && d.Contract.Dedup == loader.DedupNone {
				message = "sending again what may be in already: at least once, so its rows may be there twice"
			}
			d.Log.Warn(message, "what", t.String(), "attempt", t.Attempt+1, "class", v.Class, "error", err)
		}
	}
}

// combined returns what is known of a batch after one more attempt.
func combined(before, newest loader.Applied) loader.Applied {
	switch {
	case before == loader.Yes || newest == loader.Yes:
		return loader.Yes
	case before == loader.Unknown || newest == loader.Unknown:
		return loader.Unknown
	}
	return loader.No
}

// isRowsError reports whether the server took another number of rows than it was sent. Neither sending again nor asking
// helps: there is a claim of the batch, which does not show the missing rows.
func isRowsError(err error) bool { return errors.As(err, new(*loader.RowsError)) }

func isNeverSent(err error) bool { return errors.As(err, new(*neverSentError)) }

// begunEarlier reports whether an earlier process began an attempt of which only the database knows the end. Claims
// (DedupTx) report a batch that is in as soon as it is sent again.
func (d *deliverer) begunEarlier(t *delivery) bool {
	announced := t.batch == nil || d.Contract.Dedup == loader.DedupKey || d.Contract.Dedup == loader.DedupRange
	return t.Attempt > 0 && announced && !d.upload && d.Contract.Dedup != loader.DedupNone
}

// resolveEarlier finds out what an earlier process left. A label that is a lock needs no question: to send again is to
// ask.
func (d *deliverer) resolveEarlier(ctx context.Context, t *delivery, waits *retry.Waits) (loader.Applied, error) {
	if d.labelLocks() {
		return loader.Unknown, nil
	}
	if d.Features.Resolver == nil {
		return loader.Unknown, fmt.Errorf("an earlier process began %s, and this back-end cannot find out what became of it", t)
	}
	return d.resolveWithRetries(ctx, t, waits)
}

// labelLocks reports whether a label alone keeps two attempts apart: a back-end whose labels do not is a Resolver.
func (d *deliverer) labelLocks() bool {
	return d.Contract.Dedup == loader.DedupKey && d.Features.Resolver == nil
}

// maySendAgain reports whether another attempt is safe.
func (d *deliverer) maySendAgain(applied loader.Applied) bool {
	return applied == loader.No || d.Contract.Dedup == loader.DedupNone || d.labelLocks()
}

// announce begins the next attempt. Where no claim row will show afterwards whether there was one, it is on disk before
// anything is sent. Of a batch that goes in by parts the first is enough: a resume looks at the rows, not at attempts.
func (d *deliverer) announce(t *delivery) error {
	now := time.Now()
	t.Attempt++
	t.attempts++
	if t.batch != nil {
		t.batch.Attempt = t.Attempt
	}
	needed := t.batch == nil || d.Contract.Dedup == loader.DedupKey || d.Contract.Dedup == loader.DedupRange && t.attempts == 1
	if d.upload || !needed {
		return nil
	}
	return d.Record(event.Event{
		Batch: t.first(), Attempt: t.Attempt, Worker: d.index, Members: int64(len(t.members)), Start: now, Outcome: event.Started,
	})
}

// resolveWithRetries asks the database until it answers, on the same budget of waits as the attempts. With an error
// the answer is Unknown.
func (d *deliverer) resolveWithRetries(ctx context.Context, t *delivery, waits *retry.Waits) (loader.Applied, error) {
	d.closeSession()
	for {
		applied, err := d.resolve(ctx, t)
		if err == nil || isUndecided(err) {
			return applied, err
		}
		if !d.pause(waits, 0) {
			return loader.Unknown, err
		}
	}
}

// pause waits before the next attempt or question, and reports whether there is one: not when the retries are used up,
// nor when the run is asked to stop.
func (d *deliverer) pause(waits *retry.Waits, atLeast time.Duration) bool {
	d.enter(event.BackingOff)
	return waits.Wait(d.retryCtx, atLeast)
}

// mustResolve reports whether the database has to be asked before anything may be sent again.
func (d *deliverer) mustResolve(v loader.Verdict) bool {
	return !d.upload && d.Features.Resolver != nil && d.Contract.Dedup != loader.DedupNone && (v.Applied != loader.No || v.SessionDead)
}

// resolveFloor is the least time for an answer: ending the earlier session may mean to wait for its rollback, which has
// nothing to do with how long the user lets an attempt take.
const resolveFloor = time.Minute

// resolve asks the database, and records what turned out to be in.
func (d *deliverer) resolve(ctx context.Context, t *delivery) (loader.Applied, error) {
	d.enter(event.Resolving)
	start := time.Now()
	bound, cancel := context.WithTimeout(ctx, max(d.deadline.limit(t.batches(), 0), resolveFloor))
	defer cancel()
	found, err := d.Features.Resolver.Resolve(bound, t.Ref)
	switch {
	case err != nil:
		return loader.Unknown, fmt.Errorf("asking what became of %s: %w", t, err)
	case found.Applied == loader.Yes:
		t.unrecorded = d.record(d.eventOf(t, start, loader.Ack{Rows: t.Rows, AlreadyApplied: true}, nil))
		return loader.Yes, nil
	case found.Applied == loader.Unknown:
		return loader.Unknown, &undecidedError{what: t.String(), why: found.Reason}
	case found.Rows < 0 || found.Rows >= t.Rows || found.Rows > 0 && t.batch == nil:
		why := fmt.Sprintf("%d of its %d rows are there, and yet it is reported as %s", found.Rows, t.Rows, found.Applied)
		return loader.Unknown, &undecidedError{what: t.String(), why: why}
	}
	if t.batch != nil {
		t.batch.Skip = found.Rows
	}
	return found.Applied, nil
}

// undecidedError is an answer: the database was asked and cannot tell. To ask again would not help, and neither would
// it help the other batches to wait, so they go on.
type undecidedError struct{ what, why string }

func (e *undecidedError) Error() string {
	text := fmt.Sprintf("asking what became of %s: the database cannot tell", e.what)
	if e.why != "" {
		text += ": " + e.why
	}
	return text
}

func isUndecided(err error) bool { return errors.As(err, new(*undecidedError)) }

// gaveUpError is the end of a batch or group.
type gaveUpError struct {
	err     error
	applied loader.Applied
}

func (e *gaveUpError) Error() string { return e.err.Error() }
func (e *gaveUpError) Unwrap() error { return e.err }

// othersGoOn reports whether what was given up is a matter of itself alone.
func othersGoOn(err error) bool {
	var end *gaveUpError
	return errors.As(err, &end) && end.applied == loader.Unknown && isUndecided(err)
}

// giveUp returns what is known when nothing more can be done.
func (d *deliverer) giveUp(t *delivery, applied loader.Applied, err error) error {
	d.abandon(t.first(), t.batches(), applied)
	what := fmt.Sprintf("%s (keys %d to %d)", t, t.First, t.First+t.Rows-1)
	return &gaveUpError{applied: applied, err: fmt.Errorf("%s is %s after %d attempts: %w", what, applied, t.Attempt, err)}
}
