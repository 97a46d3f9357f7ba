package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// retrying returns the outermost layer: it sends a batch or a group until it is applied, until no retry can help, or
// until none is left.
//
// After a lost answer or a lost session it resolves the batch before it sends again. Resolve ends the earlier session
// first: an attempt that still runs on the server could otherwise commit later.
//
// The outcome of a batch is that of all its attempts together: once one is unknown so is the batch, whatever the later
// ones return, until the database has answered.
func (d *deliverer) retrying(next loadFunc) loadFunc {
	return func(ctx context.Context, t *delivery) (loader.Ack, error) {
		waits := d.policy.Waits()
		applied := loader.No // of all attempts so far
		if t.unresolved && d.Contract.Dedup == loader.DedupNone && !d.upload {
			applied = loader.Unknown // and without deduplication the database cannot be asked
		}
		if d.mustResolveFirst(t) {
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
			began := time.Now()
			ack, err := next(ctx, t)
			if err == nil {
				d.policy.Outage.Answered(began)
				return ack, nil
			}
			v := loader.VerdictOf(err)
			applied = combined(applied, v.Applied)
			another := v.Retry && waits.Failed(v, err) // before Resolve, which may wait for the server itself
			if applied == loader.Yes || isRowsError(err) && !d.upload || isNeverSent(err) {
				return loader.Ack{}, d.giveUp(t, applied, err)
			}
			if !another && applied == loader.No { // an answer would change nothing
				return loader.Ack{}, d.giveUp(t, applied, err)
			}
			if d.mustResolve(v) && !isUnconnected(err) {
				found, unanswered := d.resolveWithRetries(ctx, t, waits)
				switch {
				case isUndecided(unanswered): // an answer, about all attempts
					applied, err = loader.Unknown, fmt.Errorf("%w; %w", err, unanswered)
				case unanswered != nil: // "not applied" stays certain without an answer
					both := fmt.Errorf("%w; %w", err, unanswered)
					return loader.Ack{}, d.giveUp(t, applied, &loader.JudgedError{Verdict: loader.VerdictOf(unanswered), Err: both})
				case found == loader.Yes:
					return loader.Ack{Rows: t.Rows, AlreadyApplied: true}, nil
				default:
					applied = found
				}
			}
			if !another || !d.maySendAgain(applied) || !d.pause(waits, v.After) {
				return loader.Ack{}, d.giveUp(t, applied, err)
			}
			message := "retry"
			if applied == loader.Unknown && d.Contract.Dedup == loader.DedupNone {
				message = "retry of what may be applied: with at-least-once its rows may be in the table twice"
			} else if waits.Away {
				continue
			}
			d.Log.Warn(message, "what", t.String(), "attempt", t.Attempt+1, "class", v.Class, "error", err)
		}
	}
}

// combined returns the outcome of a batch after one more attempt.
func combined(before, newest loader.Applied) loader.Applied {
	switch {
	case before == loader.Yes || newest == loader.Yes:
		return loader.Yes
	case before == loader.Unknown || newest == loader.Unknown:
		return loader.Unknown
	}
	return loader.No
}

// isRowsError reports whether the server took another number of rows than were sent. Neither a retry nor Resolve helps:
// the batch has a claim, which does not show the missing rows.
func isRowsError(err error) bool { return errors.As(err, new(*loader.RowsError)) }

func isNeverSent(err error) bool { return errors.As(err, new(*neverSentError)) }

// unconnectedError is the error of an attempt that had no session: nothing was sent since the batch was last resolved.
type unconnectedError struct{ error }

func (e *unconnectedError) Unwrap() error { return e.error }

func isUnconnected(err error) bool { return errors.As(err, new(*unconnectedError)) }

// mustResolveFirst reports whether only the database knows the outcome of an earlier process's attempt. Claims
// (DedupTx) report an applied batch when it is sent again.
func (d *deliverer) mustResolveFirst(t *delivery) bool {
	return t.Attempt > 0 && d.announced(t) && d.Contract.Dedup != loader.DedupNone
}

// resolveEarlier finds out the outcome of an earlier process's attempt. With a label that locks, sending again does
// that.
func (d *deliverer) resolveEarlier(ctx context.Context, t *delivery, waits *retry.Waits) (loader.Applied, error) {
	if d.labelLocks() {
		return loader.Unknown, nil
	}
	if d.Features.Resolver == nil {
		return loader.Unknown, fmt.Errorf(
			"an earlier process began %s, and this back-end cannot find out what became of it", t)
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

// announced reports whether every attempt is on disk before anything is sent: no claim row would show it.
func (d *deliverer) announced(t *delivery) bool {
	return !d.upload && (t.batch == nil || d.Contract.Dedup == loader.DedupKey)
}

// announce begins the next attempt.
func (d *deliverer) announce(t *delivery) error {
	now := time.Now()
	t.Attempt++
	if t.batch != nil {
		t.batch.Attempt = t.Attempt
	}

	if !d.announced(t) {
		return nil
	}
	return d.Progress.Note(event.Event{
		Batch: t.first(), Attempt: t.Attempt, Worker: d.index, Members: int64(len(t.members)), Start: now,
		Outcome: event.Started,
	})
}

// resolveWithRetries asks the database until it answers, with the retries of the attempts. It returns Unknown with an
// error, after which there is no retry left. That a table is missing is final, as after a failover to an empty server,
// and so are a missing right and that another process has the run. Other errors are not, whatever they say of
// themselves: an answer that no one can read may be a proxy's.
func (d *deliverer) resolveWithRetries(ctx context.Context, t *delivery, waits *retry.Waits) (loader.Applied, error) {
	d.closeSession()
	for {
		applied, err := d.resolve(ctx, t, waits)
		if err == nil || isUndecided(err) {
			return applied, err
		}
		v := loader.VerdictOf(err)
		switch v.Class {
		case loader.ClassMissing:
			return loader.Unknown, loader.Final(err)
		case loader.ClassTakenOver:
			return loader.Unknown, err
		}
		if v.Class == loader.ClassPermission && !v.Retry || !waits.Failed(v, err) || !d.pause(waits, v.After) {
			return loader.Unknown, err
		}
	}
}

// pause waits before the next attempt or question. It returns false if the run is asked to stop.
func (d *deliverer) pause(waits *retry.Waits, atLeast time.Duration) bool {
	d.enter(event.BackingOff)
	return waits.Wait(d.retryCtx, atLeast)
}

// mustResolve reports whether the database must be asked before the batch is sent again.
func (d *deliverer) mustResolve(v loader.Verdict) bool {
	can := !d.upload && d.Features.Resolver != nil && d.Contract.Dedup != loader.DedupNone
	return can && (v.Applied != loader.No || v.SessionDead)
}

const (
	// resolveFloor is the shortest deadline of Resolve: it may wait for the rollback of the earlier session, whatever
	// the user's deadline for an attempt.
	resolveFloor = time.Minute
	// lastTry is for a server that is away: how long Resolve may go on when the time to wait for it is over.
	// Connections have as much.
	lastTry = 10 * time.Second
)

// resolve asks the database once, and records a batch that is applied.
func (d *deliverer) resolve(ctx context.Context, t *delivery, waits *retry.Waits) (loader.Applied, error) {
	d.enter(event.Resolving)
	start := time.Now()
	limit := max(d.deadline.limit(t.batches(), 0), resolveFloor)
	if waits.Away {
		limit = min(limit, d.policy.Outage.Left()+lastTry)
	}
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found, err := d.Features.Resolver.Resolve(bound, t.Ref)
	switch {
	case err != nil:
		return loader.Unknown, fmt.Errorf("resolving %s: %w", t, &loader.JudgedError{Verdict: d.judge(err), Err: err})
	case found.Applied == loader.Yes:
		t.unrecorded = d.record(d.eventOf(t, start, loader.Ack{Rows: t.Rows, AlreadyApplied: true}, nil))
		return loader.Yes, nil
	case found.Applied == loader.Unknown:
		return loader.Unknown, &undecidedError{what: t.String(), why: found.Reason}
	}
	return found.Applied, nil
}

// undecidedError is an answer: the database cannot tell the outcome. Asking again would not help, and the other batches
// continue.
type undecidedError struct{ what, why string }

func (e *undecidedError) Error() string {
	text := fmt.Sprintf("resolving %s: the database cannot tell the outcome", e.what)
	if e.why != "" {
		text += ": " + e.why
	}
	return text
}

func isUndecided(err error) bool { return errors.As(err, new(*undecidedError)) }

// gaveUpError is the error of a batch or group that gets no further attempt.
type gaveUpError struct {
	err     error
	applied loader.Applied
}

func (e *gaveUpError) Error() string { return e.err.Error() }
func (e *gaveUpError) Unwrap() error { return e.err }

// onlyThisOne reports whether an error concerns one batch or group, and the others continue.
func onlyThisOne(err error) bool {
	var end *gaveUpError
	return errors.As(err, &end) && end.applied == loader.Unknown && isUndecided(err)
}

// giveUp returns the error of a batch or group that gets no further attempt. Where the table is gone no resume helps; a
// store can be made again.
func (d *deliverer) giveUp(t *delivery, applied loader.Applied, err error) error {
	d.abandon(t.first(), t.batches(), applied)
	if !d.upload && loader.VerdictOf(err).Class == loader.ClassMissing {
		err = loader.Final(err)
	}
	err = fmt.Errorf("%s (%s) is %s after %d attempts: %w", t, t.place(err), applied, t.Attempt, err)
	return &gaveUpError{applied: applied, err: err}
}

// place says which rows a batch or group has, or where in the user's file the server found the reason of err.
func (t *delivery) place(err error) string {
	if t.batch == nil || t.batch.Origin == nil {
		return fmt.Sprintf("rows %d to %d", t.First, t.First+t.Rows-1)
	}
	bad := (*loader.RecordError)(nil)
	if !errors.As(err, &bad) || t.batch.Origin.Records == nil {
		return t.batch.Origin.String()
	}
	records := t.records()
	i := indexOf(records, *bad, t.batch.Format == batch.CSV)
	if i < 0 {
		return t.batch.Origin.String()
	}
	return fmt.Sprintf("%s, line %d", t.batch.Origin.File, records[i].Line)
}
