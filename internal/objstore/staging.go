package objstore

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Staging is what every method does that puts its batches into a store first. What is left to a back-end is Commit.
type Staging struct {
	Store *Store
	// Folders says that every commit group has a folder to itself: see Run.Group.
	Folders bool
	// Format is that of the run's contract.
	Format func() (batch.Format, error)
}

// Session puts every batch into its group's place.
func (s *Staging) Session(_ context.Context, c loader.Contract) (loader.Session, error) {
	if c.GroupBatches < 1 {
		return nil, fmt.Errorf("method %s wants commit groups, and the contract has none", c.Method)
	}
	if s.Folders {
		return GroupSession(s.Store, c.GroupBatches), nil
	}
	return session{folder: func(b *batch.Batch) *Run { return s.Store.Run(b.ID.Run) }, staging: true}, nil
}

// Place is where the objects of a group lie.
func (s *Staging) Place(group batch.ID) *Run {
	run := s.Store.Run(group.Run)
	if s.Folders {
		return run.Group(group.Number)
	}
	return run
}

// Discard implements loader.Committer.
func (s *Staging) Discard(ctx context.Context, g loader.Group) error {
	f, err := s.Format()
	if err != nil {
		return err
	}
	return s.Place(g.ID).Delete(ctx, g.Members, f)
}

// Objects implements loader.Inventory.
func (s *Staging) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	if s.Folders {
		return s.Store.Run(run).GroupObjects(ctx, f)
	}
	return s.Store.Run(run).Objects(ctx, f)
}

// Try puts a probe's batch into a group of its own and calls f with its place. So the probe finds out, too, before the first
// batch, whether the server can read the bucket. What cannot be removed is listed at the run's end.
func (s *Staging) Try(ctx context.Context, b *batch.Batch, f func(*Run) (loader.Proof, error)) (loader.Proof, error) {
	place := s.Store.Run(b.ID.Run).Group(ProbeGroup)
	if err := place.Put(ctx, b); err != nil {
		return loader.Proof{}, err
	}
	defer func() { _ = place.Delete(context.WithoutCancel(ctx), []loader.Ref{loader.RefOf(b)}, b.Format) }()
	return f(place)
}
