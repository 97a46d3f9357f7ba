package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqltx"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

var (
	_ loader.Committer = (*staged)(nil)
	_ loader.Inventory = (*staged)(nil)
	_ loader.Checker   = (*staged)(nil)
)

// staged is the back-end for methods whose batches go into an object store first. What is not below is as for the
// others: claims, and the look for them, are about commit groups instead of batches.
type staged struct {
	*opened
	store *objstore.Store
}

func openStaged(ctx context.Context, l *opened) (loader.Loader, error) {
	store, err := objstore.Open(ctx, *l.target.Via, l.deps)
	if err != nil {
		return nil, err
	}
	if store.Endpoint() != "" {
		l.deps.Log.Warn("the server reads from Amazon S3 whatever the endpoint of --via is", "endpoint", store.Endpoint())
	}
	return &staged{opened: l, store: store}, nil
}

// CheckServer adds what is to be said of the store.
func (l *staged) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := l.opened.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := l.store.CheckServer(ctx, i, l.Server().Product)
	return append(all, found...), err
}

// Close closes the connections to the store.
func (l *staged) Close() error { return errors.Join(l.opened.Close(), l.store.Close()) }

// Session puts every batch into the folder of its group.
func (l *staged) Session(_ context.Context, c loader.Contract) (loader.Session, error) {
	if c.GroupBatches < 1 {
		return nil, fmt.Errorf("postgres: method %s wants commit groups, and the contract has none", l.method)
	}
	return objstore.GroupSession(l.store, c.GroupBatches), nil
}

// Commit lets the server read the group's objects in a transaction that claims the group first, on a connection of its
// own.
func (l *staged) Commit(ctx context.Context, g loader.Group) (ack loader.Ack, err error) {
	r, err := l.prepared()
	if err != nil {
		return ack, err
	}
	access, err := l.store.Access(ctx)
	if err != nil {
		return ack, err
	}
	s, err := l.open(ctx, r.contract)
	if err != nil {
		return ack, err
	}
	defer func() { _ = s.Close() }()
	s.loading.Store(g.ID.Number)
	var c sqltx.Conn = s
	if r.contract.Dedup != loader.DedupTx {
		c = unclaimed{s}
	}
	objects := l.store.Run(g.ID.Run).Group(g.ID.Number)
	ack, err = sqltx.Load(ctx, c, g.Ref, g.Rows, func(ctx context.Context) (int64, []string, error) {
		rows, err := s.fetch(ctx, objects, g.Members, access)
		return rows, nil, err
	})
	if err != nil {
		return loader.Ack{}, s.explain(ctx, s.whyNot(ctx, err))
	}
	return ack, nil
}

// unclaimed is a session whose transactions claim nothing. There is one all the same: a group goes in whole.
type unclaimed struct{ *session }

func (s unclaimed) Claim(ctx context.Context, _ loader.Ref) (taken bool, rows int64, err error) {
	_, err = exec(ctx, s.conn, "BEGIN")
	return false, 0, err
}

// Discard removes the group's objects.
func (l *staged) Discard(ctx context.Context, g loader.Group) error {
	r, err := l.prepared()
	if err != nil {
		return err
	}
	return l.store.Run(g.ID.Run).Group(g.ID.Number).Delete(ctx, g.Members, r.contract.Format)
}

// Objects lists what lies in the run's folder.
func (l *staged) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	return l.store.Run(run).GroupObjects(ctx, f)
}

// Probe puts one object, lets the server read it under a claim, and rolls back. So it also finds out, before the first
// batch, whether the server can read the bucket.
func (l *staged) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	access, err := l.store.Access(ctx)
	if err != nil {
		return loader.Proof{}, err
	}
	objects := l.store.Run(b.ID.Run).Group(objstore.ProbeGroup)
	if err := objects.Put(ctx, b); err != nil {
		return loader.Proof{}, err
	}
	defer func() { // what stays is listed at the run's end
		_ = objects.Delete(context.WithoutCancel(ctx), []loader.Ref{loader.RefOf(b)}, b.Format)
	}()
	return l.prove(ctx, c, loader.RefOf(b), func(s *session) (int64, error) {
		n, err := s.fetch(ctx, objects, []loader.Ref{loader.RefOf(b)}, access)
		if err != nil {
			_ = s.Rollback(ctx) // a failed transaction answers no question
			err = s.whyNot(ctx, err)
		}
		return n, err
	})
}
