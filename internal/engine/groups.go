package engine

import (
	"context"
	"slices"
	"sync"
)

// groups collects stored batches until their commit group is full, and hands full groups to the committers. Group n has
// the batches n·size … n·size+size−1; the last one ends with the run.
//
// Uploads may be ahead of the commits by twice as many full groups as are committed at a time: one waiting group for
// each committer keeps the database busy, and more would only fill the store. In addition each worker may be filling a
// group.
type groups struct {
	size  int64
	limit int

	mu      sync.Mutex
	changed chan struct{} // closed at every change, and replaced
	end     int64         // batches of the run; an upper bound for a run by duration
	open    map[int64]*group
	full    []*group           // waiting for a committer
	busy    int                // groups being committed
	closed  bool               // no more batches will be stored
	earlier map[int64]struct{} // stored by earlier processes
}

// group is a commit group. Missing batches have no rows.
type group struct {
	number  int64
	batches []Stored // up to the last one stored: a group may be larger than the run
	stored  int64
}

func newGroups(c Config, end int64) *groups {
	g := &groups{
		size: c.Contract.GroupBatches, limit: 2 * max(c.Contract.Commits, 1), changed: make(chan struct{}),
		end: end, open: make(map[int64]*group), earlier: make(map[int64]struct{}),
	}
	for _, b := range c.Progress.Stored() {
		g.earlier[b.ID.Number] = struct{}{}
		g.add(b)
	}
	return g
}

// stored reports whether an earlier process stored the batch.
func (g *groups) stored(number int64) bool {
	_, ok := g.earlier[number] // written only before the first worker starts
	return ok
}

// add adds a stored batch to its group.
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
		open.stored++
	}
	g.promote(open)
}

// promote hands the group to the committers if it is full.
func (g *groups) promote(open *group) {
	if open.stored == min(g.size, g.end-open.number*g.size) {
		delete(g.open, open.number)
		g.full = append(g.full, open)
		g.signal()
	}
}

// close ends the storing. end is the number of batches of the run, or 0 if it was stopped: groups that are not full
// then stay in the store.
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

// next waits for a full group. It returns false when there will be none, or when stop returns true.
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
