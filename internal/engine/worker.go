package engine

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// worker holds one session and loads one batch at a time.
type worker struct {
	*run
	index   int
	account *stats.Worker
	session sessionHolder
	load    loadFunc
}

func newWorker(r *run, index int) *worker {
	w := &worker{run: r, index: index, account: r.Stats.Worker(index)}
	w.session = sessionHolder{open: func(ctx context.Context) (loader.Session, error) {
		return r.Loader.Session(ctx, r.Contract)
	}}
	w.load = w.retrying(w.recorded(w.counted(w.bounded(w.connected))))
	return w
}

// work loads batches until there are no more.
func (w *worker) work(ctx context.Context) error {
	defer w.session.close()
	defer w.account.Enter(event.Idle)
	for {
		number, ok := w.numbers.take()
		if !ok || ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.one(ctx, number); err != nil {
			return err
		}
	}
}

// one fetches and loads a batch, and gives its buffer back.
func (w *worker) one(ctx context.Context, number int64) error {
	w.account.Enter(event.WaitBuffer)
	b, err := w.Source.Batch(ctx, number)
	if err != nil {
		return fmt.Errorf("making batch %d: %w", number, err)
	}
	defer b.Release()
	w.account.Hold(b)
	defer w.account.Hold(nil)
	b.AllRead = func() { w.account.Enter(event.WaitAck) }

	if w.Limit != nil {
		w.account.Enter(event.WaitRate)
		if err := w.Limit.WaitN(ctx, len(b.Encoded)); err != nil {
			return err
		}
	}
	_, err = w.load(ctx, try{Batch: b, attempt: 1})
	return err
}
