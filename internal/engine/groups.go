package engine

import (
	"context"
	"slices"
	"sync"
)

// groups collects stored batches until their commit group is full, and hands full groups to the committers. Group n is
// made of the batches n·size … n·size+size−1; the run's last one ends where the run does.
//
// Uploads may be ahead of the commits by twice as many full groups as are committed at a time: as many that wait as are
// on their way keep the database busy, and more would only fill the store. Besides, each worker may be filling a group of
// its own when the others have reached that.
type groups struct {
	size  int64
	limit int

	mu      sync.Mutex
	changed chan struct{} // closed at every change, and replaced
	end     int64         // batches of the run; of a run by duration the most it can have
	open    map[int64]*group
	full    []*group           // wait for a committer
	busy    int                // are with one
	closed  bool               // nothing more will be stored
	earlier map[int64]struct{} // stored by earlier processes
}

// group is a commit group that is being collected. Batches have their place, and those that are not there yet no rows.
type group struct {
	number  int64
	batches []Stored // as long as the last one that is there needs it: a group may be as large as the run, or larger
	there   int64
}

func newGroups(c Config) *groups {
	g := &groups{
		size: c.Contract.GroupBatches, limit: 2 * max(c.Contract.Commits, 1), changed: make(chan struct{}),
		end: c.Batches, open: make(map[int64]*group), earlier: make(map[int64]struct{}),
	}
	for _, b := range c.Stored {
		g.earlier[b.ID.Number] = struct{}{}
		g.add(b)
	}
	return g
}

// stored reports whether an earlier process had put the batch into the store.
func (g *groups) stored(number int64) bool {
	_, there := g.earlier[number] // written before the first worker starts, and never again
	return there
}

// add takes a stored batch.
func (g *groups) add(b Stored) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, at := b.ID.Number/g.size, int(b.ID.Number%g.size)
	open := g.open[n]
	if open == nil {
		open = &group{number: n}
		g.open[n] = open
	}
	if missing := at + 1 - len(open.batches); missing > 0 {
		open.batches = append(open.batches, make([]Stored, missing)...)
	}
	if open.batches[at].Rows == 0 {
		open.batches[at] = b
		open.there++
	}
	g.promote(open)
}

// promote hands a group that is full to the committers.
func (g *groups) promote(open *group) {
	if open.there == min(g.size, g.end-open.number*g.size) {
		delete(g.open, open.number)
		g.full = append(g.full, open)
		g.signal()
	}
}

// close notes that nothing will be stored any more, and where the run ends; 0 when it was cut off, and groups that are
// not full stay in the store.
func (g *groups) close(end int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if end > 0 {
		g.end = end
		var numbers []int64
		for n := range g.open {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		for _, n := range numbers {
			g.promote(g.open[n])
		}
	}
	g.signal()
}

// next waits for a full group. It returns false when there will be none, or when stop reports that none is to be begun.
func (g *groups) next(ctx context.Context, stop func() bool) (next *group, ok bool) {
	g.await(ctx, func() bool {
		switch {
		case stop():
			return true
		case len(g.full) == 0:
			return g.closed
		}
		next, g.full = g.full[0], g.full[1:]
		g.busy++
		return true
	})
	return next, next != nil
}

// finished makes room for another group.
func (g *groups) finished() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.signal()
}

func (g *groups) hasRoom() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.full)+g.busy < g.limit
}

// waitForRoom waits until one more batch may be uploaded. It returns false when ctx has ended.
func (g *groups) waitForRoom(ctx context.Context) bool {
	return g.await(ctx, func() bool { return len(g.full)+g.busy < g.limit })
}

// wake makes all waiting goroutines check their condition again.
func (g *groups) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.signal()
}

func (g *groups) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// await waits until ready, which is called under the mutex, or until ctx ends.
func (g *groups) await(ctx context.Context, ready func() bool) bool {
	for ctx.Err() == nil {
		g.mu.Lock()
		yes, changed := ready(), g.changed
		g.mu.Unlock()
		if yes {
			return true
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return false
}
