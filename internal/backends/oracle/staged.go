package oracle

import (
	"context"
	"errors"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// staged is the back-end for cloud-copy, whose batches go into an object store first. Claims are for commit groups
// instead of batches; everything else is as for the other methods.
type staged struct {
	*opened
	*objstore.Staging
}

const selectCloudPackage = "SELECT TO_CHAR(COUNT(*)) FROM all_objects o WHERE o.object_name = 'DBMS_CLOUD' " +
	"AND o.object_type IN ('PACKAGE', 'SYNONYM')"

func openStaged(ctx context.Context, l *opened) (loader.Loader, error) {
	err := l.withLink(ctx, func(k *link) error {
		n, err := sqlload.Number(ctx, k, selectCloudPackage)
		if err == nil && n == 0 {
			err = &loader.Error{
				Op: "look for DBMS_CLOUD", Applied: loader.No, Err: errors.New("there is no such package for this user"),
				Hint: "GRANT EXECUTE ON DBMS_CLOUD TO " + l.target.User + " on an Autonomous Database; install it elsewhere",
			}
		}
		return err
	})
	if err != nil {
		return nil, failed("look for DBMS_CLOUD", err)
	}
	store, err := objstore.Open(ctx, *l.target.Via, l.deps)
	if err != nil {
		return nil, err
	}
	return &staged{opened: l, Staging: &objstore.Staging{Store: store, Folders: true, Format: l.Format}}, nil
}

// CheckServer adds the store's findings.
func (l *staged) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := l.opened.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := l.Store.CheckServer(ctx, i, "Oracle")
	return append(all, found...), err
}

// Close implements loader.Loader.
func (l *staged) Close() error { return l.Store.Close() }

// Session implements loader.Loader.
func (l *staged) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	return l.Staging.Session(ctx, c)
}

// Commit lets the server read the group's objects in a transaction that claims the group first, on a new connection.
func (l *staged) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	st, err := l.State()
	if err != nil {
		return loader.Ack{}, err
	}
	s, err := l.openOver(ctx, st.Want.Contract, g.ID, g.Members)
	if err != nil {
		return loader.Ack{}, failed("load", err)
	}
	defer func() { _ = s.Close() }()
	ack, err := sqlload.Load(ctx, s, g.Ref, sqlload.ClaimThen(s, s.readObjects))
	return ack, failed("load", err)
}

// openOver opens a session and creates an external table over a group's objects, before the transaction, since DDL
// commits. The session drops it; after a crash the next attempt or Forget does.
func (l *staged) openOver(ctx context.Context, c loader.Contract, id batch.ID, members []loader.Ref) (*session, error) {
	access, err := l.Store.Access(ctx)
	if err != nil {
		return nil, &loader.Error{Op: "ask for the credentials of the object store", Applied: loader.No, Err: err}
	}
	s, err := l.open(ctx, c)
	if err != nil {
		return nil, err
	}
	objects := l.Place(id)
	uris := make([]string, len(members))
	for i, m := range members {
		uris[i] = uriOf(access, objects.Name(m.ID.Number, c.Format))
	}
	external := externalTable(id.Run, id.Number)
	create := s.createExternal(external, uris)
	if _, err = s.exec(ctx, create); err != nil && !s.dead {
		// DBMS_CLOUD hides the number of its error, so a table that is left over is found by dropping it. An earlier attempt
		// that still reads it fails, or has the claim and is waited for.
		if _, dropErr := s.exec(ctx, dropExternal(external)); dropErr == nil {
			_, err = s.exec(ctx, create)
		}
	}
	if err != nil {
		_ = s.Close()
		return nil, &loader.Error{Op: "create an external table over the group's objects", Applied: loader.No, Err: err}
	}
	s.external = external
	return s, nil
}

// readObjects loads the rows of the external table.
func (s *session) readObjects(ctx context.Context) (int64, []string, error) {
	rows, err := s.exec(ctx, s.fromExternal(s.external))
	return rows, nil, err
}

// Forget removes the external tables of attempts that broke, and then the run's claims.
func (l *staged) Forget(ctx context.Context, run string) (int64, bool, error) {
	err := l.withLink(ctx, func(k *link) error {
		found, err := sqlload.Rows(ctx, k, selectExternals(run))
		for _, row := range found {
			if isExternal(row[0], run) && err == nil {
				_, err = k.exec(ctx, dropExternal(row[0]))
			}
		}
		return err
	})
	if err != nil {
		return 0, false, failed("drop the external tables of run "+run, err)
	}
	return l.opened.Forget(ctx, run)
}

// Probe reads one object under a claim, and rolls back.
func (l *staged) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	ref := loader.RefOf(b)
	return l.Try(ctx, b, func(*objstore.Run) (loader.Proof, error) {
		return l.ProbeBy(ctx, ref, func(ctx context.Context) (sqlload.Session, sqlload.Send, error) {
			s, err := l.openOver(ctx, c, batch.ID{Run: b.ID.Run, Number: objstore.ProbeGroup}, []loader.Ref{ref})
			if err != nil {
				return nil, nil, err
			}
			return s, sqlload.ClaimThen(s, s.readObjects), nil
		})
	})
}
