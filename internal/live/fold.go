package live

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// foldEvery is the time between two lines of one message.
const foldEvery = time.Second

// Folding is a handler that passes on one record a second of those below an error that have the same message: a server
// that goes away fails the batches of all workers, and each would be a line. A record that stands for several is the
// newest of them, with their number as "times".
type Folding struct {
	slog.Handler
	folds *folds
}

// folds holds the messages of the last second.
type folds struct {
	mu   sync.Mutex
	open map[string]*fold
}

type fold struct {
	timer  *time.Timer
	times  int
	newest slog.Record
	to     slog.Handler // of the newest
}

// Fold wraps a handler. Close it at the end.
func Fold(h slog.Handler) Folding {
	return Folding{h, &folds{open: make(map[string]*fold)}}
}

// Handle implements slog.Handler.
func (f Folding) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		return f.Handler.Handle(ctx, r)
	}
	f.folds.mu.Lock()
	defer f.folds.mu.Unlock()
	if one := f.folds.open[r.Message]; one != nil {
		one.times++
		one.newest, one.to = r.Clone(), f.Handler
		return nil
	}
	f.folds.open[r.Message] = &fold{timer: time.AfterFunc(foldEvery, func() { f.folds.next(r.Message) })}
	return f.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (f Folding) WithAttrs(attrs []slog.Attr) slog.Handler {
	return Folding{f.Handler.WithAttrs(attrs), f.folds}
}

// WithGroup implements slog.Handler.
func (f Folding) WithGroup(name string) slog.Handler {
	return Folding{f.Handler.WithGroup(name), f.folds}
}

// next prints what came within the second, and ends the message if nothing did.
func (f *folds) next(message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.open[message]
	switch {
	case one == nil: // closed
	case one.times == 0:
		delete(f.open, message)
	default:
		one.print()
		one.timer.Reset(foldEvery)
	}
}

// print ignores errors: a closed terminal must not end a run.
func (o *fold) print() {
	if o.times > 1 {
		o.newest.AddAttrs(slog.Int("times", o.times))
	}
	_ = o.to.Handle(context.Background(), o.newest)
	o.times = 0
}

// Close prints what is left.
func (f Folding) Close() {
	f.folds.mu.Lock()
	defer f.folds.mu.Unlock()
	left := make([]*fold, 0, len(f.folds.open))
	for message, one := range f.folds.open {
		one.timer.Stop()
		delete(f.folds.open, message)
		if one.times > 0 {
			left = append(left, one)
		}
	}
	slices.SortFunc(left, func(a, b *fold) int { return a.newest.Time.Compare(b.newest.Time) })
	for _, one := range left {
		one.print()
	}
}
