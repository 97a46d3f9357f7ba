package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// worker holds one session and loads one batch at a time.
type worker struct {
	deliverer
	account *stats.Worker
	session loader.Session // nil while there is none
	careful bool           // the last batch had bad records
}

func newWorker(r *run, index int) *worker {
	account := r.Stats.Worker(index)
	w := &worker{account: account}
	w.deliverer = deliverer{
		run: r, index: index, enter: account.Enter, closeSession: w.endSession,
		deadline: &r.batchDeadline, upload: r.Contract.Staged(), policy: r.Retry,
	}
	if w.upload {
		w.policy.Outage = r.storeOutage
	}
	w.load = w.retrying(w.sifted(w.attempts(w.connected)))
	return w
}

// connected is the innermost layer: it sends the batch over the worker's session, and opens one if there is none.
func (w *worker) connected(ctx context.Context, t *delivery) (loader.Ack, error) {
	if err := w.connect(ctx); err != nil {
		return loader.Ack{}, err
	}
	ack, err := w.session.Load(ctx, t.batch)
	if err != nil && w.Classify(err).SessionDead {
		w.endSession()
	}
	return ack, err
}

// connect opens a session if there is none.
func (w *worker) connect(ctx context.Context) error {
	if w.session == nil {
		w.enter(event.Connecting)
		s, err := w.Loader.Session(ctx, w.Contract)
		if err != nil {
			return &unconnectedError{&loader.Error{Op: "connect", Applied: loader.No, Err: err}}
		}
		w.session = s
	}
	w.enter(event.Sending)
	return nil
}

// work loads batches until there are no more or ctx ends, which is not an error of the worker.
func (w *worker) work(ctx context.Context) error {
	defer w.endSession()
	defer w.enter(event.Idle)
	for w.waitForFirst() && w.waitForRoom() {
		p, ok := w.waitForSlot()
		if !ok {
			break
		}
		number, ok := w.numbers.take()
		if !ok || ctx.Err() != nil {
			break
		}
		err := w.deliver(ctx, number, p)
		isFirst := w.firstIn != nil && number == 0
		if err != nil && (isFirst || !onlyThisOne(err)) {
			return err
		}
		if isFirst && ctx.Err() == nil {
			close(w.firstIn)
		}
		if err != nil {
			w.Log.Error("a batch is given up, the others continue", "error", err)
			w.keepError(err)
		}
	}
	return nil
}

// waitForFirst waits for batch 0, which the first worker sends, and reports whether to go on.
func (w *worker) waitForFirst() bool {
	if w.firstIn == nil || w.index == 0 {
		return true
	}
	select {
	case <-w.firstIn:
		return true
	case <-w.handoutCtx.Done():
		return false
	}
}

// waitForRoom waits while the committers have enough groups, that is for the database, and reports whether to upload
// one more batch.
func (w *worker) waitForRoom() bool {
	if w.groups == nil || w.groups.hasRoom() {
		return true
	}
	w.enter(event.WaitCommit)
	return w.groups.waitForRoom(w.handoutCtx)
}

// waitForSlot waits for the start of one more batch, and reports whether there is one. It waits before a number is
// handed out, so that a run that is asked to stop has no waiting batches.
func (w *worker) waitForSlot() (slot, bool) {
	if w.schedule == nil {
		return slot{}, true
	}
	w.enter(event.WaitRate)
	return w.schedule.wait(w.handoutCtx)
}

// deliver fetches and loads a batch, and releases its buffer.
func (w *worker) deliver(ctx context.Context, number int64, p slot) error {
	w.enter(event.WaitBuffer)
	b, err := w.Source.Batch(ctx, number)
	if end := (*source.EndError)(nil); errors.As(err, &end) {
		w.numbers.endAt(end.Batches)
		return nil
	}
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making batch %s: %w", rowsOf(number, w.Source), err)
	}
	defer b.Release()
	w.account.Hold(b)
	defer w.account.Hold(nil)
	b.AllRead = func() { w.enter(event.WaitAck) }
	t := newDelivery(b, w.Progress.Attempts(number))
	if w.schedule != nil {
		w.schedule.correct(p, t.encoded)
		t.intended = p.intended
	}
	if _, err = w.load(ctx, t); err == nil && w.groups != nil {
		w.groups.add(Stored{Ref: t.Ref, Payload: t.payload, Encoded: t.encoded})
	}
	return err
}

// rowsOf names a batch, and its rows if they have keys.
func rowsOf(number int64, from source.Source) string {
	first, rows := from.Span(number)
	if rows == 0 || from.Proof().Dataset == nil {
		return strconv.FormatInt(number, 10)
	}
	return fmt.Sprintf("%d (rows %d to %d)", number, first, first+rows-1)
}

// endSession closes the session. It ignores the error of Close: the connection is dead or done.
func (w *worker) endSession() {
	if w.session != nil {
		_ = w.session.Close()
		w.session = nil
	}
}
