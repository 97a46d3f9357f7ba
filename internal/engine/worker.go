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

// work loads batches until there are no more, or until ctx ends, which is no failure of this worker.
func (w *worker) work(ctx context.Context) error {
	defer w.session.close()
	defer w.account.Enter(event.Idle)
	for w.pace() {
		number, ok := w.numbers.take()
		if !ok || ctx.Err() != nil {
			break
		}
		if err := w.one(ctx, number); err != nil {
			return err
		}
	}
	return nil
}

// pace waits until one more batch may be sent, and tells whether there is to be one. It comes before a number is
// handed out, so that a run that is asked to stop has no batches that wait for their turn. All batches but the last
// are alike, so the newest one tells the length of the next.
func (w *worker) pace() bool {
	if w.Limit == nil {
		return true
	}
	w.account.Enter(event.WaitRate)
	return w.Limit.WaitN(w.more, int(w.batchBytes.Load())) == nil
}

// one fetches and loads a batch, and gives its buffer back.
func (w *worker) one(ctx context.Context, number int64) error {
	w.account.Enter(event.WaitBuffer)
	b, err := w.Source.Batch(ctx, number)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making batch %d: %w", number, err)
	}
	defer b.Release()
	w.account.Hold(b)
	defer w.account.Hold(nil)
	b.AllRead = func() { w.account.Enter(event.WaitAck) }
	w.batchBytes.Store(int64(len(b.Encoded)))
	_, err = w.load(ctx, try{Batch: b, attempt: 1})
	return err
}
