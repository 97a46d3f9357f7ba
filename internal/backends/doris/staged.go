package doris

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
)

// staged is the loader of s3-load: sessions store objects, and Commit makes Doris read them.
type staged struct {
	inner
	*objstore.Staging
}

// inner is opened, deeper than Staging.
type inner struct{ *opened }

func openStaged(ctx context.Context, l *opened, d loader.Deps) (loader.Loader, error) {
	staging, err := objstore.OpenStaging(ctx, l, l.target, d)
	if err != nil {
		return nil, err
	}
	return &staged{inner{l}, staging}, nil
}

// Commit loads the objects of a group by one statement, which is one transaction under the group's label.
func (l *staged) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	s, err := l.State()
	if err != nil {
		return loader.Ack{}, err
	}
	run, format := l.Place(g.ID), s.Want.Contract.Format
	names := make([]string, len(g.Members))
	for i, m := range g.Members {
		names[i] = run.Name(m.ID.Number, format)
		// Doris loads those objects of a list that it finds, and calls it success.
		if there, err := run.Holds(ctx, m, format); err != nil || !there {
			return l.withoutObject(ctx, g, names[i], err)
		}
	}
	label := l.name.label(g.Ref, true)
	return l.once(ctx, g.Ref, label, func() (loader.Ack, error) {
		access, err := l.Store.Access(ctx) // for every attempt: keys of a role expire
		if err != nil {
			return loader.Ack{}, err
		}
		// Every object is named: a pattern could match other objects, or half of a group.
		from := source{uri: "s3://" + access.Bucket + "/" + alternatives(run.Folder(), names), access: access, format: format}
		return l.insertSelect(ctx, g, statements{s.Statements}.loadObjects(label, from), access)
	})
}

// withoutObject returns the outcome of a group that lacks an object: it may be applied, and its objects deleted
// already.
func (l *staged) withoutObject(ctx context.Context, g loader.Group, name string, cause error) (loader.Ack, error) {
	if cause != nil {
		return loader.Ack{}, &loader.Error{Op: "look for " + name, Applied: loader.No, Err: cause}
	}
	found, err := l.Resolve(ctx, g.Ref)
	if err == nil && found.Applied == loader.Yes {
		return loader.Ack{Rows: g.Rows, AlreadyApplied: true}, nil
	}
	cause = fmt.Errorf("object %s of %s is missing or incomplete", name, g.ID)
	if found.Reason != "" {
		err = errors.New(found.Reason)
	}
	if err != nil {
		cause = and(cause, err)
	}
	return loader.Ack{}, &loader.Error{Op: "commit", Applied: found.Applied, Err: cause}
}

// insertSelect makes Doris read the objects of the group, over a connection of its own.
func (l *staged) insertSelect(ctx context.Context, g loader.Group, statement string, a objstore.Access) (loader.Ack, error) {
	session, err := l.openInsert(ctx, statements{}, false)
	if err != nil {
		return loader.Ack{}, err
	}
	defer func() { _ = session.Close() }()
	n, err := session.conn.Exec(ctx, statement)
	if err != nil {
		return loader.Ack{}, failed("commit", mysqlconn.Redacted(err, a.Redact))
	}
	// Missing objects are not an error to Doris. If all are missing, that depends on the release (apache/doris#25280).
	if n != g.Rows {
		return loader.Ack{}, &loader.Error{
			Op: "commit", Applied: loader.Unknown, Err: &loader.RowsError{Sent: g.Rows, Acknowledged: n},
			Hint: "can Doris reach the object store, as ?server_endpoint= names it?",
		}
	}
	return loader.Ack{Rows: n}, nil
}
