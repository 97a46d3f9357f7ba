package postgres

import (
	"context"
	"errors"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// staged is the back-end for Redshift's method, whose batches go into an object store first. Its claims are those of
// commit groups.
type staged struct {
	*opened
	*objstore.Staging
}

func openStaged(ctx context.Context, l *opened) (loader.Loader, error) {
	store, err := objstore.Open(ctx, *l.target.Via, l.deps)
	if err != nil {
		return nil, err
	}
	if store.Endpoint() != "" {
		l.deps.Log.Warn("the server reads from Amazon S3 whatever the endpoint of --staging is", "endpoint", store.Endpoint())
	}
	return &staged{opened: l, Staging: &objstore.Staging{Store: store, Folders: true, Format: l.Format}}, nil
}

// CheckServer adds the store's findings.
func (l *staged) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := l.opened.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := l.Store.CheckServer(ctx, i, l.Server().Product)
	return append(all, found...), err
}

// Close closes the connections to the store.
func (l *staged) Close() error { return errors.Join(l.opened.Close(), l.Store.Close()) }

// Commit lets the server read the group's objects, on a connection of its own and in a transaction that claims the
// group.
func (l *staged) Commit(ctx context.Context, g loader.Group) (ack loader.Ack, err error) {
	access, err := l.Store.Access(ctx)
	if err != nil {
		return ack, err
	}
	return l.commitGroup(ctx, g, l.Place(g.ID).Folder(), access)
}

// commitGroup is Commit of the objects in a folder.
func (l *opened) commitGroup(
	ctx context.Context, g loader.Group, folder string, access objstore.Access,
) (ack loader.Ack, err error) {
	st, err := l.State()
	if err != nil {
		return ack, err
	}
	s, err := l.open(ctx, st.Want.Contract)
	if err != nil {
		return ack, err
	}
	defer func() { _ = s.Close() }()
	s.loading.Store(g.ID.Number)
	ack, err = sqlload.Load(ctx, s, g.Ref, sqlload.ClaimThen(s, func(ctx context.Context) (int64, []string, error) {
		rows, err := s.copyGroup(ctx, folder, access)
		return rows, nil, err
	}))
	if err != nil {
		return loader.Ack{}, s.wrapError(ctx, s.addBadRow(ctx, err))
	}
	return ack, nil
}

// Probe lets the server read one object under a claim, and rolls back.
func (l *staged) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	access, err := l.Store.Access(ctx)
	if err != nil {
		return loader.Proof{}, err
	}
	ref := loader.RefOf(b)
	return l.Try(ctx, b, func(objects *objstore.Run) (loader.Proof, error) {
		return l.ProbeBy(ctx, ref, func(ctx context.Context) (sqlload.Session, sqlload.Send, error) {
			s, err := l.open(ctx, c)
			return s, sqlload.ClaimThen(s, func(ctx context.Context) (int64, []string, error) {
				n, err := s.copyGroup(ctx, objects.Folder(), access)
				if err != nil {
					_ = s.Rollback(ctx) // a failed transaction answers no query
					err = s.addBadRow(ctx, err)
				}
				return n, nil, err
			}), err
		})
	})
}
