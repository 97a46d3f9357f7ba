package loadertest

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// object is a batch in the store.
type object struct {
	ref   loader.Ref
	bytes int64
}

// Commits returns how often the group was committed, or tried to be.
func (m *Memory) Commits(group int64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits[group]
}

// Objects returns how many objects lie in the store.
func (m *Memory) Objects() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects)
}

// Discards returns how many groups were discarded.
func (m *Memory) Discards() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.discards
}

// RemoveObject loses a batch from the store, as a lifecycle rule would, and reports whether it was there.
func (m *Memory) RemoveObject(run string, number int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := batch.ID{Run: run, Number: number}
	_, there := m.objects[id]
	delete(m.objects, id)
	return there
}

// store keeps the batch as an object; an object of the same name is replaced.
func (s *memorySession) store(b *batch.Batch) loader.Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := loader.Ref{ID: b.ID, First: b.First, Rows: b.Rows}
	s.objects[b.ID] = object{ref: ref, bytes: int64(len(b.Encoded))}
	return loader.Ack{Rows: b.Rows, Stored: true}
}

func (l *memoryLoader) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	f := l.fault(l.GroupScript, l.commits, g.ID.Number)
	return f.strikes(ctx, "commit", func() (loader.Ack, error) { return l.commit(g, f.Missing) })
}

// commit is the whole transaction: all objects of the group, or an error.
func (l *memoryLoader) commit(g loader.Group, missing int64) (loader.Ack, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.caps.Dedup == loader.DedupTx {
		if err := l.mayWrite(*l.row); err != nil {
			return loader.Ack{}, &loader.Error{Op: "claim", Applied: loader.No, Err: err}
		}
	}
	id := l.claimant(g.ID)
	if c, taken := l.claims[id]; taken {
		return loader.Ack{Rows: c.Rows, AlreadyApplied: true}, nil
	}
	var refs []loader.Ref
	rows := int64(0)
	for _, m := range g.Members {
		o, there := l.objects[m.ID]
		if !there {
			return loader.Ack{}, &loader.Error{Op: "commit", Applied: loader.No, Err: fmt.Errorf("there is no object of batch %s", m.ID)}
		}
		refs, rows = append(refs, o.ref), rows+o.ref.Rows
	}
	refs[len(refs)-1].Rows -= missing
	l.claims[id] = loader.Ref{ID: g.ID, First: g.First, Rows: rows - missing}
	l.applied = append(l.applied, refs...)
	return loader.Ack{Rows: rows - missing}, nil
}

func (l *memoryLoader) Discard(_ context.Context, g loader.Group) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.discards++
	for _, m := range g.Members {
		delete(l.objects, m.ID)
	}
	return nil
}

func (l *memoryLoader) Objects(_ context.Context, run string, f func(name string, number, bytes int64) error) error {
	l.mu.Lock()
	found := make(map[string]object)
	for id, o := range l.objects {
		if id.Run == run {
			found[fmt.Sprintf("%s/%012d.bin", run, id.Number)] = o
		}
	}
	l.mu.Unlock()
	for name, o := range found {
		if err := f(name, o.ref.ID.Number, o.bytes); err != nil {
			return err
		}
	}
	return nil
}
