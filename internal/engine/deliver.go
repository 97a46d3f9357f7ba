package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// delivery is a batch or a commit group with the attempts at it: what the layers need to know.
type delivery struct {
	loader.Ref              // Attempt is the newest one, over all processes of the run
	batch      *batch.Batch // nil for a group
	members    []loader.Ref // of a group

	payload, encoded int64
	attempts         int       // of this process
	unresolved       bool      // the outcome of an attempt of an earlier process is not known
	intended         time.Time // zero without a schedule
	// unrecorded is why the end of the newest attempt is not in the journal.
	unrecorded error
}

func newDelivery(b *batch.Batch, begun Begun) *delivery {
	t := &delivery{Ref: loader.RefOf(b), batch: b, payload: b.Payload, encoded: int64(len(b.Encoded))}
	t.Attempt, t.unresolved = begun.Attempt, begun.Unknown
	return t
}

// first returns the number of the batch, or of the first of a group.
func (t *delivery) first() int64 {
	if t.batch == nil {
		return t.members[0].ID.Number
	}
	return t.ID.Number
}

// batches returns how many batches depend on the attempt.
func (t *delivery) batches() int64 { return max(int64(len(t.members)), 1) }

// skip returns how many rows at the front are there already.
func (t *delivery) skip() int64 {
	if t.batch == nil {
		return 0
	}
	return t.batch.Skip
}

// wanted returns how many rows an ack has to count.
func (t *delivery) wanted() int64 { return t.Rows - t.skip() }

func (t *delivery) group() loader.Group { return loader.Group{Ref: t.Ref, Members: t.members} }

// String returns the name in messages.
func (t *delivery) String() string {
	if t.batch == nil {
		return fmt.Sprintf("commit group %d (batches %d to %d)", t.ID.Number, t.first(), t.first()+t.batches()-1)
	}
	return fmt.Sprintf("batch %d", t.ID.Number)
}

// loadFunc is what every layer is and wraps.
type loadFunc func(context.Context, *delivery) (loader.Ack, error)

// deliverer brings in one batch or group at a time, through the layers of this file: a worker or a committer.
type deliverer struct {
	*run
	index        int               // of the worker; −1 for a committer
	enter        func(event.State) // notes what it does
	closeSession func()            // ends the session that cannot be used again
	deadline     *deadline
	upload       bool // into a store: nothing gets into the table by it
	load         loadFunc
}

// layers builds the layers around the innermost one.
func (d *deliverer) layers(innermost loadFunc) loadFunc {
	return d.retrying(d.recorded(d.counted(d.bounded(innermost))))
}

// bounded gives the attempt a deadline. A context that ends makes the session close its connection, which rolls back
// on the server; no reader is ever made to fail.
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

// counted compares the rows of the answer with those that were sent: "ok" is never trusted.
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
			return ack, d.knownBefore(t, ack)
		case ack.Rows != t.wanted() && !d.Uncounted && d.Contract.Dedup != loader.DedupNone:
			// A back-end that compares before the commit returns No; here it is not known which rows are in.
			return ack, &loader.Error{Op: "load", Applied: loader.Unknown,
				Err: &loader.RowsError{Sent: t.wanted(), Acknowledged: ack.Rows, Detail: ack.Detail}}
		}
		return ack, nil
	}
}

// knownBefore checks that it was this run that put in what is there already. Every attempt under a label was announced
// on disk, so the first one cannot find its own. Claims are not announced: those of an earlier process are ours too.
func (d *deliverer) knownBefore(t *delivery, ack loader.Ack) error {
	ours := t.Attempt > 1 || d.Resumed && d.Contract.Dedup == loader.DedupTx
	if !ours {
		return &loader.Error{Op: "load", Applied: loader.Unknown,
			Err:  &neverSentError{what: fmt.Sprintf("%s of run %s", t, t.ID.Run)},
			Hint: "two runs with one id? check the claim table or the labels before going on"}
	}
	if ack.Rows != t.Rows {
		// Rows of it are in, and it is not known which.
		return &loader.Error{Op: "load", Applied: loader.Unknown, Err: &otherRowsError{
			what: fmt.Sprintf("%s of run %s", t, t.ID.Run), rows: &loader.RowsError{Sent: t.Rows, Acknowledged: ack.Rows, Detail: ack.Detail},
		}}
	}
	return nil
}

// neverSentError reports that the database knows a batch before its first attempt. Resolve would only find those rows
// again and take them for this run's.
type neverSentError struct{ what string }

func (e *neverSentError) Error() string {
	return e.what + " is in already, although it was never sent"
}

// otherRowsError reports that the database knows the batch with another number of rows. Like rows missing from an
// answer it cannot be resolved by asking: the answer would be that the batch is in.
type otherRowsError struct {
	what string
	rows *loader.RowsError
}

func (e *otherRowsError) Error() string {
	return fmt.Sprintf("the database reports that %s is in with %d rows, and it has %d", e.what, e.rows.Acknowledged, e.rows.Sent)
}
func (e *otherRowsError) Unwrap() error { return e.rows }

// recorded makes the event of the attempt.
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
		Rows: ack.Rows + t.skip(), Payload: t.payload, Encoded: t.encoded,
		Detail: ack.Detail,
	}
	switch {
	case err == nil && ack.AlreadyApplied:
		e.Outcome, e.Rows = event.Already, ack.Rows
	case err == nil:
		e.Outcome = event.Applied
		if d.upload {
			e.Outcome = event.Stored
		}
		if !d.Uncounted {
			e.Missing = t.wanted() - ack.Rows
		}
	default:
		v := d.classify(err)
		e.Class, e.Error, e.Rows, e.Outcome = v.Class, err.Error(), 0, event.Unknown
		switch v.Applied {
		case loader.No:
			e.Outcome = event.NotApplied
		case loader.Yes: // not as it was meant, but a resume must not send it again
			e.Outcome, e.Rows = event.Applied, t.Rows
		}
	}
	return e
}

// classify asks the back-end about an error. Whatever became of an upload, its rows are not in the table.
func (d *deliverer) classify(err error) loader.Verdict {
	v := d.Classify(err)
	if d.upload {
		v.Applied = loader.No
	}
	return v
}

// deadline chooses how long an attempt may take.
type deadline struct {
	fixed   time.Duration // for each batch; 0: chosen
	mu      sync.Mutex
	slowest time.Duration
}

// An attempt may take twenty times as long as the slowest so far, and never less than two minutes and a second for every
// MiB: short enough to notice a server that hangs tonight, long enough for one that is busy or far away. Beyond an hour
// twenty times as long is too much.
const (
	deadlineFloor   = 2 * time.Minute
	deadlinePerMiB  = time.Second
	deadlineFactor  = 20
	deadlineCeiling = time.Hour
)

// limit is for so many batches at once, of so many encoded bytes.
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
