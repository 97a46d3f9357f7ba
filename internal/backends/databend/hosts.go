package databend

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strconv"

	"github.com/terapush/terapush/pkg/loader"
)

// control is the node for everything but loads: the first until it cannot be reached.
func (db *database) control() *node { return db.nodes[db.turned.Load()%uint64(len(db.nodes))] }

// after is the host that follows one.
func (db *database) after(n *node) *node {
	return db.nodes[(slices.Index(db.nodes, n)+1)%len(db.nodes)]
}

// run is node.run on a host that can be reached.
func (db *database) run(ctx context.Context, s statement, f func(row) error) (err error) {
	for range db.nodes {
		at := db.turned.Load()
		err = db.nodes[at%uint64(len(db.nodes))].run(ctx, s, f)
		if !unreachable(err) || ctx.Err() != nil {
			break
		}
		db.turned.CompareAndSwap(at, at+1)
	}
	return err
}

// value asks for a single value; "" when there is no row or it is NULL.
func (db *database) value(ctx context.Context, sql string) (text string, err error) {
	err = db.run(ctx, statement{sql: sql}, func(r row) error {
		if len(r) > 0 && r[0] != nil {
			text = *r[0]
		}
		return nil
	})
	return text, err
}

// number asks for a single number.
func (db *database) number(ctx context.Context, sql string) (int64, error) {
	text, err := db.value(ctx, sql)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// unreachable tells that nobody listens at a host, so that another may be asked: not a byte of the request was sent.
// A host that has the wrong certificate is no such thing, nor is one that is lost while a statement runs there.
func unreachable(err error) bool {
	var lost *lostError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return loader.NotSent(err) && !errors.As(err, &lost) && !errors.As(err, &certificate) && !errors.As(err, &record)
}
