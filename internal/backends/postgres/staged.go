package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// staged is the back-end for Redshift's method, whose batches go into an object store first. Its claims are those of
// commit groups.
type staged struct {
	inner
	*objstore.Staging
}

// inner is opened, deeper than Staging.
type inner struct{ *opened }

func openStaged(ctx context.Context, l *opened) (loader.Loader, error) {
	staging, err := objstore.OpenStaging(ctx, l, l.target, l.deps)
	if err != nil {
		return nil, err
	}

	if endpoint := staging.Store.Endpoint(); endpoint != "" {
		l.deps.Log.Warn("the server reads from Amazon S3 whatever the endpoint of --staging is", "endpoint", endpoint)
	}
	return newStaged(l, staging), nil
}

// newStaged gives every group a folder: Redshift takes no list of names.
func newStaged(l *opened, staging *objstore.Staging) *staged {
	staging.Folders = true
	return &staged{inner{l}, staging}
}

// Commit lets the server read the group's objects, on a connection of its own and in a transaction that claims the
// group.
func (l *staged) Commit(ctx context.Context, g loader.Group) (ack loader.Ack, err error) {
	access, err := l.Store.Access(ctx)
	if err != nil {
		return ack, err
	}
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
		rows, err := s.copyGroup(ctx, l.Place(g.ID).Folder(), access)
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

// copyGroup lets the server copy the objects of a folder in the open transaction, and returns its count of rows.
func (s *session) copyGroup(ctx context.Context, folder string, a objstore.Access) (rows int64, err error) {
	if _, err := s.conn.Exec(ctx, s.copyObjects(a, folder)); err != nil {
		return 0, redacted(err, a)
	}

	counted, err := sqlload.Rows(ctx, s.conn, copyCount)
	if err != nil {
		return 0, err
	}
	return sqlload.ParseNumber(counted[0][0])
}

// redacted removes pieces of the keys from a server's error: it quotes statements that it cannot parse.
func redacted(err error, a objstore.Access) error {
	server := (*pgconn.PgError)(nil)
	if !errors.As(err, &server) {
		return err
	}
	clean := *server
	for _, text := range [...]*string{&clean.Message, &clean.Detail, &clean.Hint, &clean.Where, &clean.InternalQuery} {
		*text = a.Redact(*text)
	}
	return serverError{&clean}
}
