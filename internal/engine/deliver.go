package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// delivery is a batch or a commit group, with the attempts at it.
type delivery struct {
	loader.Ref              // Attempt is the newest one, over all processes of the run
	batch      *batch.Batch // nil for a group
	members    []loader.Ref // of a group

	payload, encoded int64
	unresolved       bool      // the outcome of an earlier process's attempt is unknown
	intended         time.Time // zero without a schedule

	left []batch.Bad    // records that the batch goes in without
	kept []batch.Record // the others, once they were looked at
	// unrecorded is the error that kept the newest attempt's end out of the journal.
	unrecorded error
}

func newDelivery(b *batch.Batch, earlier Attempts) *delivery {
	t := &delivery{Ref: loader.RefOf(b), batch: b, payload: b.Payload, encoded: int64(len(b.Encoded))}
	t.Attempt, t.unresolved = earlier.Attempt, earlier.Unknown
	return t
}

// first returns the number of the batch, or of the first of a group.
func (t *delivery) first() int64 {
	if t.batch == nil {
		return t.members[0].ID.Number
	}
	return t.ID.Number
}

// batches returns how many batches the delivery has.
func (t *delivery) batches() int64 { return max(int64(len(t.members)), 1) }

func (t *delivery) group() loader.Group { return loader.Group{Ref: t.Ref, Members: t.members} }

// String returns the name in messages.
func (t *delivery) String() string {
	if t.batch == nil {
		return fmt.Sprintf("commit group %d (batches %d to %d)", t.ID.Number, t.first(), t.first()+t.batches()-1)
	}
	return fmt.Sprintf("batch %d", t.ID.Number)
}

// loadFunc is a layer.
type loadFunc func(context.Context, *delivery) (loader.Ack, error)

// deliverer loads one batch or group at a time through the layers: a worker or a committer.
type deliverer struct {
	*run
	index        int               // of the worker; −1 for a committer
	enter        func(event.State) // notes its state
	closeSession func()            // closes a session that cannot be used again
	deadline     *deadline
	policy       retry.Policy
	upload       bool // to a store: the table does not change
	load         loadFunc
}

// attempts builds the layers of one attempt around the innermost one.
func (d *deliverer) attempts(innermost loadFunc) loadFunc {
	return d.recorded(d.judged(d.counted(d.bounded(innermost))))
}

// bounded gives the attempt a deadline. When the context ends the session closes its connection, and the server rolls
// back; no reader is ever made to fail.
func (d *deliverer) bounded(next loadFunc) loadFunc {
	return func(ctx context.Context, t *delivery) (loader.Ack, error) {
		limit := d.deadline.limit(t.batches(), t.encoded)
		bound, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		start := time.Now()
		ack, err := next(bound, t)
		switch {
		case err == nil:
			d.deadline.add(time.Since(start))
		case bound.Err() != nil:
			d.closeSession()
			if ctx.Err() == nil {
				err = &lateError{limit: limit, err: err}
			}
		}
		return ack, err
	}
}

// lateError reports that an attempt took longer than its deadline, whatever the driver made of the closed connection.
type lateError struct {
	limit time.Duration
	err   error
}

func (e *lateError) Error() string {
	return fmt.Sprintf("no answer within %s (see --batch-timeout): %v", e.limit, e.err)
}
func (e *lateError) Unwrap() []error { return []error{context.DeadlineExceeded, e.err} }

// counted compares the acknowledged rows with those sent: "ok" is never trusted.
func (d *deliverer) counted(next loadFunc) loadFunc {
	return func(ctx context.Context, t *delivery) (loader.Ack, error) {
		ack, err := next(ctx, t)
		switch {
		case err != nil:
			return ack, err
		case ack.Stored != d.upload:
			return ack, &loader.Error{Op: "load", Applied: loader.Unknown,
				Err: fmt.Errorf("the back-end returned stored=%t for %s, which its contract rules out", ack.Stored, t)}
		case ack.AlreadyApplied:
			return ack, d.checkAlreadyApplied(t, ack)
		case ack.Rows != t.Rows && !d.Uncounted && d.Contract.Dedup != loader.DedupNone:
			// A back-end that compares before the commit returns No; after the commit it is unknown which rows are
			// applied.
			return ack, &loader.Error{Op: "load", Applied: loader.Unknown,
				Err: &loader.RowsError{Sent: t.Rows, Acknowledged: ack.Rows, Detail: ack.Detail}}
		}
		return ack, nil
	}
}

// checkAlreadyApplied checks that this run has applied the batch. Every attempt under a label is announced on disk, so
// the first one cannot find its own rows. Claims are not announced: those of an earlier process are this run's as well.
func (d *deliverer) checkAlreadyApplied(t *delivery, ack loader.Ack) error {
	ours := t.Attempt > 1 || d.Progress.Resumed() && d.Contract.Dedup == loader.DedupTx
	if !ours {
		return &loader.Error{Op: "load", Applied: loader.Unknown,
			Err:  &neverSentError{what: fmt.Sprintf("%s of run %s", t, t.ID.Run)},
			Hint: "do two runs have one id? check the claim table or the labels first"}
	}
	if ack.Rows != t.Rows {
		// Some of its rows are applied, and it is unknown which.
		return &loader.Error{Op: "load", Applied: loader.Unknown, Err: &otherRowsError{
			what: fmt.Sprintf("%s of run %s", t, t.ID.Run),
			rows: &loader.RowsError{Sent: t.Rows, Acknowledged: ack.Rows, Detail: ack.Detail},
		}}
	}
	return nil
}

// neverSentError reports a batch that the database has before its first attempt. Resolve would take those rows for this
// run's.
type neverSentError struct{ what string }

func (e *neverSentError) Error() string {
	return e.what + " is applied already, although it was never sent"
}

// otherRowsError reports a batch that the database has with another number of rows. Resolve cannot help: it would
// report the batch as applied.
type otherRowsError struct {
	what string
	rows *loader.RowsError
}

func (e *otherRowsError) Error() string {
	return fmt.Sprintf("the database reports %s as applied with %d rows, and it has %d",
		e.what, e.rows.Acknowledged, e.rows.Sent)
}
func (e *otherRowsError) Unwrap() error { return e.rows }

// judged gives the error of an attempt the back-end's verdict, which the layers around it read.
func (d *deliverer) judged(next loadFunc) loadFunc {
	return func(ctx context.Context, t *delivery) (loader.Ack, error) {
		ack, err := next(ctx, t)
		if err != nil {
			err = &loader.JudgedError{Verdict: d.judge(err), Err: err}
		}
		return ack, err
	}
}

// recorded records the event of the attempt.
func (d *deliverer) recorded(next loadFunc) loadFunc {
	return func(ctx context.Context, t *delivery) (loader.Ack, error) {
		start := time.Now()
		ack, err := next(ctx, t)
		t.unrecorded = d.record(d.eventOf(t, start, ack, err))
		return ack, err
	}
}

func (d *deliverer) eventOf(t *delivery, start time.Time, ack loader.Ack, err error) event.Event {
	e := event.Event{
		Batch: t.first(), Attempt: t.Attempt, Worker: d.index, Members: int64(len(t.members)),
		Start: start, Seconds: time.Since(start).Seconds(), Intended: t.intended,
		Rows: ack.Rows, Payload: t.payload, Encoded: t.encoded,
		Detail: ack.Detail,
	}
	switch {
	case err == nil && ack.AlreadyApplied:
		e.Outcome = event.Already
	case err == nil:
		e.Outcome = event.Applied
		if d.upload {
			e.Outcome = event.Stored
		}
		if !d.Uncounted {
			e.Missing = t.Rows - ack.Rows
		}
	default:
		v := loader.VerdictOf(err)
		e.Class, e.Error, e.Rows, e.Outcome = v.Class, loader.Explain(err), 0, event.Unknown
		switch v.Applied {
		case loader.No:
			e.Outcome = event.NotApplied
		case loader.Yes: // despite the error: a resume must not send it again
			e.Outcome, e.Rows = event.Applied, t.Rows
		}
	}
	return e
}

// judge returns the back-end's verdict. A failed upload never puts rows into the table.
func (d *deliverer) judge(err error) loader.Verdict {
	v := d.Classify(err)
	if d.upload {
		v.Applied = loader.No
	}
	return v
}

// deadline decides how long an attempt may take.
type deadline struct {
	fixed   time.Duration // for each batch; 0 derives it from the slowest attempt
	mu      sync.Mutex
	slowest time.Duration
}

// An attempt may take twenty times as long as the slowest so far, but at least two minutes plus a second per MiB: short
// enough to detect a hanging server overnight, long enough for a busy or distant one. Twenty times is an hour at most;
// twice may be more.
const (
	deadlineFloor   = 2 * time.Minute
	deadlinePerMiB  = time.Second
	deadlineFactor  = 20
	deadlineCeiling = time.Hour
)

// limit returns the deadline for a number of batches with size encoded bytes together.
func (d *deadline) limit(batches, size int64) time.Duration {
	if d.fixed > 0 {
		return d.fixed * time.Duration(batches)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	floor := deadlineFloor + time.Duration(size>>20)*deadlinePerMiB
	return max(floor, min(deadlineFactor*d.slowest, deadlineCeiling), 2*d.slowest)
}

func (d *deadline) add(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slowest = max(d.slowest, took)
}
