package loadertest

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The labels of DedupKey are checks and no locks, as on the databases that are hardest to get right: a label is looked
// up when an attempt begins and remembered when it ends, and two that overlap both go in.

// label looks the batch's label up, as every attempt begins.
func (s *memorySession) label(b *batch.Batch) (loader.Ack, bool) {
	if s.contract.Dedup != loader.DedupKey || s.contract.Staged() {
		return loader.Ack{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, taken := s.claims[b.ID]
	return loader.Ack{Rows: c.Rows, AlreadyApplied: true}, taken
}

// linger leaves an attempt at work that no caller waits for.
func (s *memorySession) linger(b *batch.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[b.ID] = loader.RefOf(b)
}

// applyLabelled puts the batch in, and beside it what an earlier attempt has left at work. No key refuses its rows.
func (s *memorySession) applyLabelled(b *batch.Batch, missing int64) loader.Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, there := s.running[b.ID]; there {
		delete(s.running, b.ID)
		s.applied = append(s.applied, loader.Ref{ID: b.ID, First: r.First, Rows: r.Rows})
	}
	ref := loader.Ref{ID: b.ID, First: b.First, Rows: b.Rows - missing}
	s.claims[b.ID] = ref
	s.applied = append(s.applied, ref)
	return loader.Ack{Rows: ref.Rows}
}
