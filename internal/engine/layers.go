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

// try is one attempt at a batch.
type try struct {
	*batch.Batch
	attempt int // 1 for the first
}

// loadFunc is what every layer is and wraps.
type loadFunc func(context.Context, try) (loader.Ack, error)

// connected is the innermost layer: it sends the batch over the worker's session, opening one where there is none.
func (w *worker) connected(ctx context.Context, t try) (loader.Ack, error) {
	w.account.Enter(event.Connecting)
	s, err := w.session.get(ctx)
	if err != nil {
		return loader.Ack{}, &loader.Error{Op: "connect", Applied: loader.No, Err: err}
	}
	w.account.Enter(event.Sending)
	ack, err := s.Load(ctx, t.Batch)
	if err != nil && w.Classify(err).SessionDead {
		w.session.close()
	}
	return ack, err
}

// bounded gives the attempt a deadline. A context that ends makes the session close its connection, which rolls back
// on the server; no reader is ever made to fail.
func (w *worker) bounded(next loadFunc) loadFunc {
	return func(ctx context.Context, t try) (loader.Ack, error) {
		limit := w.deadline.limit(len(t.Encoded))
		bound, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		start := time.Now()
		ack, err := next(bound, t)
		switch {
		case err == nil:
			w.deadline.add(time.Since(start))
		case bound.Err() != nil:
			w.session.close()
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

// counted compares the rows of the answer with those of the batch: "ok" is never trusted.
func (w *worker) counted(next loadFunc) loadFunc {
	return func(ctx context.Context, t try) (loader.Ack, error) {
		ack, err := next(ctx, t)
		if err != nil {
			return ack, err
		}
		if ack.AlreadyApplied {
			if t.attempt == 1 && !w.Resumed {
				return ack, &loader.Error{Op: "load", Applied: loader.No,
					Err:  fmt.Errorf("batch %s is claimed already, although it was never sent", t.ID),
					Hint: "two runs with one id? check the claim table before going on"}
			}
			if ack.Rows != t.Rows {
				return ack, &loader.Error{Op: "load", Applied: loader.No,
					Err: fmt.Errorf("the claim of batch %s speaks of %d rows, the batch has %d", t.ID, ack.Rows, t.Rows)}
			}
			return ack, nil
		}
		if ack.Rows != t.Wanted() && !w.TrustAcks && w.Contract.Dedup != loader.DedupNone {
			// Who compares before the commit says No; here nobody knows which rows are in.
			return ack, &loader.Error{Op: "load", Applied: loader.Unknown,
				Err: &loader.RowsError{Sent: t.Wanted(), Acknowledged: ack.Rows, Detail: ack.Detail}}
		}
		return ack, nil
	}
}

// recorded makes the event of the attempt.
func (w *worker) recorded(next loadFunc) loadFunc {
	return func(ctx context.Context, t try) (loader.Ack, error) {
		start := time.Now()
		ack, err := next(ctx, t)
		w.record(w.eventOf(t, start, ack, err))
		return ack, err
	}
}

func (w *worker) eventOf(t try, start time.Time, ack loader.Ack, err error) event.Event {
	e := event.Event{
		Batch: t.ID.Number, Attempt: t.attempt, Worker: w.index,
		Start: start, Seconds: time.Since(start).Seconds(),
		Rows: ack.Rows + t.Skip, Payload: t.Payload, Encoded: int64(len(t.Encoded)),
		Detail: ack.Detail,
	}
	switch {
	case err == nil && ack.AlreadyApplied:
		e.Outcome, e.Rows = event.Already, ack.Rows
	case err == nil:
		e.Outcome = event.Applied
		if !w.TrustAcks {
			e.Missing = t.Wanted() - ack.Rows
		}
	default:
		v := w.Classify(err)
		e.Class, e.Error, e.Rows = v.Class, err.Error(), 0
		e.Outcome = event.Unknown
		if v.Applied == loader.No {
			e.Outcome = event.NotApplied
		}
	}
	return e
}

// sessionHolder keeps a worker's session. It belongs to the worker's goroutine.
type sessionHolder struct {
	open func(context.Context) (loader.Session, error)
	now  loader.Session
}

func (h *sessionHolder) get(ctx context.Context) (loader.Session, error) {
	if h.now == nil {
		s, err := h.open(ctx)
		if err != nil {
			return nil, err
		}
		h.now = s
	}
	return h.now, nil
}

// close ends the session. What Close says of a connection that is dead or done is of no use to anybody.
func (h *sessionHolder) close() {
	if h.now != nil {
		_ = h.now.Close()
		h.now = nil
	}
}

// deadline chooses how long an attempt may take.
type deadline struct {
	fixed   time.Duration
	mu      sync.Mutex
	slowest time.Duration
}

// An attempt may take twenty times as long as the slowest so far, and never less than two minutes and a second for every
// MiB: short enough to notice a server that hangs tonight, long enough for one that is busy or far away. Beyond an hour
// nobody waits twenty times as long.
const (
	deadlineFloor   = 2 * time.Minute
	deadlinePerMiB  = time.Second
	deadlineFactor  = 20
	deadlineCeiling = time.Hour
)

// limit is for a body of so many bytes.
func (d *deadline) limit(size int) time.Duration {
	if d.fixed > 0 {
		return d.fixed
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
