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

// retrying is the outermost layer: it sends a batch until it is in, until no retry can help, or until none is left.
//
// After a lost answer or a lost session it asks the database before it sends again. Resolve ends the earlier session
// first: an attempt that still runs on the server could otherwise commit behind our back.
func (w *worker) retrying(next loadFunc) loadFunc {
	return func(ctx context.Context, t try) (loader.Ack, error) {
		waits := w.Retry.Waits()
		if in, err := w.begin(ctx, t, waits); in || err != nil {
			return loader.Ack{Rows: t.Rows, AlreadyApplied: in}, err
		}
		for {
			ack, err := next(ctx, t)
			if err == nil {
				return ack, nil
			}
			v := w.Classify(err)
			if isShort(err) {
				return loader.Ack{}, w.giveUp(t, v.Applied, err)
			}
			if w.mustResolve(v) {
				found, ask := w.resolved(ctx, t, waits)
				switch {
				case ask != nil: // what is certainly not in stays so, whether or not somebody can be asked
					err = fmt.Errorf("%w; %w", err, ask)
				case found == loader.Yes:
					return loader.Ack{Rows: t.Rows, AlreadyApplied: true}, nil
				default:
					v.Applied = found
				}
			}
			certain := v.Applied == loader.No || w.Contract.Dedup == loader.DedupNone
			if !v.Retry || !certain || !w.pause(waits, v.After) {
				return loader.Ack{}, w.giveUp(t, v.Applied, err)
			}
			t.attempt++
			again := "sending a batch again"
			if v.Applied == loader.Unknown {
				again = "sending a batch again that may be in already: at least once, so its rows may be there twice"
			}
			w.Log.Warn(again, "batch", t.ID.Number, "attempt", t.attempt, "class", v.Class, "error", err)
		}
	}
}

// isShort tells that the server took another number of rows than it was sent. Neither sending again nor asking helps:
// the claim would say that the batch is in, and say nothing of the missing rows.
func isShort(err error) bool {
	var short *loader.RowsError
	return errors.As(err, &short)
}

// begin is for batches that the database does not take as a whole: it writes down that the batch is begun before any
// row is sent, and finds out how much of it an earlier process left there.
func (w *worker) begin(ctx context.Context, t try, waits *retry.Waits) (in bool, err error) {
	if w.Contract.Dedup != loader.DedupRange {
		return false, nil
	}
	if w.Begun(t.ID.Number) {
		applied, err := w.resolved(ctx, t, waits)
		if err != nil {
			return false, w.giveUp(t, applied, err)
		}
		if applied == loader.Yes {
			return true, nil
		}
	}
	started := event.Event{Batch: t.ID.Number, Attempt: t.attempt, Worker: w.index, Start: time.Now(), Outcome: event.Started}
	if err := w.Record(started); err != nil {
		return false, w.giveUp(t, loader.No, err)
	}
	return false, nil
}

// resolved asks the database about the batch until it answers, on the same budget of waits as the attempts. With an
// error the answer is Unknown.
func (w *worker) resolved(ctx context.Context, t try, waits *retry.Waits) (loader.Applied, error) {
	w.session.close()
	for {
		applied, err := w.resolve(ctx, t)
		if err == nil {
			return applied, nil
		}
		if !w.pause(waits, 0) {
			return loader.Unknown, err
		}
	}
}

// pause waits before the next attempt or question, and tells whether there is one: not when the retries are used up,
// nor when the run is asked to stop.
func (w *worker) pause(waits *retry.Waits, atLeast time.Duration) bool {
	w.account.Enter(event.BackingOff)
	return waits.Wait(w.patience, atLeast)
}

// mustResolve tells whether the database has to be asked before the batch may be sent again.
func (w *worker) mustResolve(v loader.Verdict) bool {
	_, can := w.Loader.(loader.Resolver)
	return can && w.Contract.Dedup != loader.DedupNone && (v.Applied != loader.No || v.SessionDead)
}

// resolveFloor is the least time for an answer: ending the earlier session may mean to wait for its rollback, which has
// nothing to do with how long the user lets an attempt take.
const resolveFloor = time.Minute

// resolve asks the database about the batch, and records a batch that turned out to be in.
func (w *worker) resolve(ctx context.Context, t try) (loader.Applied, error) {
	w.account.Enter(event.Resolving)
	start := time.Now()
	bound, cancel := context.WithTimeout(ctx, max(w.deadline.limit(0), resolveFloor))
	defer cancel()
	found, err := w.Loader.(loader.Resolver).Resolve(bound, loader.RefOf(t.Batch))
	switch {
	case err != nil:
		return loader.Unknown, fmt.Errorf("asking what became of batch %d: %w", t.ID.Number, err)
	case found.Applied == loader.Yes:
		w.record(w.eventOf(t, start, loader.Ack{Rows: t.Rows, AlreadyApplied: true}, nil))
		return loader.Yes, nil
	case found.Applied == loader.Unknown:
		return loader.Unknown, fmt.Errorf("asking what became of batch %d: the database cannot tell", t.ID.Number)
	case found.Rows < 0 || found.Rows >= t.Rows:
		return loader.Unknown, fmt.Errorf("asking what became of batch %d: %d of its %d rows are there, and yet it is %s",
			t.ID.Number, found.Rows, t.Rows, found.Applied)
	}
	t.Skip = found.Rows
	return found.Applied, nil
}

// giveUp says of a batch what is known when nothing more can be done for it.
func (w *worker) giveUp(t try, applied loader.Applied, err error) error {
	w.abandon(t.ID.Number, applied)
	return fmt.Errorf("batch %d (keys %d to %d) is %s after %d attempts: %w",
		t.ID.Number, t.First, t.Last(), applied, t.attempt, err)
}
