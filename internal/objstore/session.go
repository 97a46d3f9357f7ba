package objstore

import (
	"context"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Session puts batches into the run's folder, where they are at their goal.
func Session(r *Run) loader.Session {
	return session{folder: func(*batch.Batch) *Run { return r }}
}

// GroupSession puts batches into a folder for every commit group of so many of them, and says that they are stored, not
// loaded: see Run.Group.
func GroupSession(s *Store, batches int64) loader.Session {
	return session{folder: func(b *batch.Batch) *Run { return s.Run(b.ID.Run).Group(b.ID.Number / batches) }, staging: true}
}

type session struct {
	folder  func(*batch.Batch) *Run
	staging bool
}

func (s session) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if err := s.folder(b).Put(ctx, b); err != nil {
		return loader.Ack{}, err
	}
	return loader.Ack{Stored: s.staging, Rows: b.Rows}, nil
}

func (session) Close() error { return nil }
