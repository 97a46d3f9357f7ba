package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// mover moves one batch or group at a time, through the layers of this file: a worker or a committer.
type mover struct {
	*run
	index    int               // of the worker; −1 for a committer
	enter    func(event.State) // tells what it does
	hangUp   func()            // ends the session that cannot be used again
	deadline *deadline
	upload   bool // into a store: nothing gets into the table by it
	load     loadFunc
}

// layers builds the layers around the innermost one.
func (m *mover) layers(innermost loadFunc) loadFunc {
	return m.retrying(m.recorded(m.counted(m.bounded(innermost))))
}

// bounded gives the attempt a deadline. A context that ends makes the session close its connection, which rolls back
// on the server; no reader is ever made to fail.
func (m *mover) bounded(next loadFunc) loadFunc {
	return func(ctx context.Context, t *try) (loader.Ack, error) {
		limit := m.deadline.limit(t.batches(), t.encoded)
		bound, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		start := time.Now()
		ack, err := next(bound, t)
		switch {
		case err == nil:
			m.deadline.add(time.Since(start))
		case bound.Err() != nil:
			m.hangUp()
			if ctx.Err() == nil {
				err = &lateError{limit: limit, err: err}
			}
		}
		return ack, err
	}
}

// lateError says that an attempt took longer than its deadline, whatever the driver made of the closed connection.
type lateError struct {
	limit time.Duration
	err   error
}

func (e *lateError) Error() string {
	return fmt.Sprintf("no answer within %s (see --batch-timeout): %v", e.limit, e.err)
}
func (e *lateError) Unwrap() []error { return []error{context.DeadlineExceeded, e.err} }

// counted compares the rows of the answer with those that were sent: "ok" is never trusted.
func (m *mover) counted(next loadFunc) loadFunc {
	return func(ctx context.Context, t *try) (loader.Ack, error) {
		ack, err := next(ctx, t)
		switch {
		case err != nil:
			return ack, err
		case ack.Stored != m.upload:
			return ack, &loader.Error{Op: "load", Applied: loader.Unknown,
				Err: fmt.Errorf("the back-end says stored=%t of %s, and the contract says otherwise", ack.Stored, t)}
		case ack.AlreadyApplied:
			return ack, m.knownBefore(t, ack)
		case ack.Rows != t.wanted() && !m.Uncounted && m.Contract.Dedup != loader.DedupNone:
			// Who compares before the commit says No; here nobody knows which rows are in.
			return ack, &loader.Error{Op: "load", Applied: loader.Unknown,
				Err: &loader.RowsError{Sent: t.wanted(), Acknowledged: ack.Rows, Detail: ack.Detail}}
		}
		return ack, nil
	}
}

// knownBefore checks that it was this run that put in what is there already. Every attempt under a label was announced
// on disk, so the first one cannot find its own. Claims are not announced: those of an earlier process are ours too.
func (m *mover) knownBefore(t *try, ack loader.Ack) error {
	ours := t.Attempt > 1 || m.Resumed && m.Contract.Dedup == loader.DedupTx
	if !ours {
		return &loader.Error{Op: "load", Applied: loader.Unknown,
			Err:  &neverSentError{what: fmt.Sprintf("%s of run %s", t, t.ID.Run)},
			Hint: "two runs with one id? check the claim table or the labels before going on"}
	}
	if ack.Rows != t.Rows {
		// Rows of it are in, and nobody knows which.
		return &loader.Error{Op: "load", Applied: loader.Unknown, Err: &otherRowsError{
			what: fmt.Sprintf("%s of run %s", t, t.ID.Run), rows: &loader.RowsError{Sent: t.Rows, Acknowledged: ack.Rows, Detail: ack.Detail},
		}}
	}
	return nil
}

// neverSentError says that the database knows a batch before its first attempt. To ask what became of it would only
// find those rows again and call them ours.
type neverSentError struct{ what string }

func (e *neverSentError) Error() string {
	return e.what + " is in already, although it was never sent"
}

// otherRowsError says that the database knows the batch with another number of rows. Like rows missing from an answer it
// cannot be mended by asking: what is asked would say that the batch is in.
type otherRowsError struct {
	what string
	rows *loader.RowsError
}

func (e *otherRowsError) Error() string {
	return fmt.Sprintf("the database says that %s is in with %d rows, and it has %d", e.what, e.rows.Acknowledged, e.rows.Sent)
}
func (e *otherRowsError) Unwrap() error { return e.rows }

// recorded makes the event of the attempt.
func (m *mover) recorded(next loadFunc) loadFunc {
	return func(ctx context.Context, t *try) (loader.Ack, error) {
		start := time.Now()
		ack, err := next(ctx, t)
		t.unkept = m.record(m.eventOf(t, start, ack, err))
		return ack, err
	}
}

func (m *mover) eventOf(t *try, start time.Time, ack loader.Ack, err error) event.Event {
	e := event.Event{
		Batch: t.first(), Attempt: t.Attempt, Worker: m.index, Members: int64(len(t.members)),
		Start: start, Seconds: time.Since(start).Seconds(), Intended: t.intended,
		Rows: ack.Rows + t.skip(), Payload: t.payload, Encoded: t.encoded,
		Detail: ack.Detail,
	}
	switch {
	case err == nil && ack.AlreadyApplied:
		e.Outcome, e.Rows = event.Already, ack.Rows
	case err == nil:
		e.Outcome = event.Applied
		if m.upload {
			e.Outcome = event.Stored
		}
		if !m.Uncounted {
			e.Missing = t.wanted() - ack.Rows
		}
	default:
		v := m.classify(err)
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
func (m *mover) classify(err error) loader.Verdict {
	v := m.Classify(err)
	if m.upload {
		v.Applied = loader.No
	}
	return v
}
