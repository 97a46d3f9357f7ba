// Package sqlload is exactly-once for databases with transactions: claim → load → commit, in one transaction, in that
// order. The claim row comes first so that an attempt that overlaps an earlier one of the same batch waits on the
// claim's key, or fails there, before it has sent a single row.
//
// It knows the order, and the SQL that the back-ends share, with a dialect for what differs; how a statement is sent is
// the back-end's.
package sqlload

import (
	"context"
	"errors"

	"github.com/terapush/terapush/pkg/loader"
)

// Transaction is a session that loads under claims. Its errors carry the server's own words.
type Transaction interface {
	// Claim begins a transaction and inserts the claim row. taken reports whether the row is there already; rows is then
	// what it says.
	Claim(ctx context.Context, ref loader.Ref) (taken bool, rows int64, err error)
	// Commit ends the transaction. An error is taken as unknown, unless it is a *loader.Error that knows better.
	Commit(ctx context.Context) error
	// Rollback gives up the transaction; where that fails the session must not be used again.
	Rollback(ctx context.Context) error
}

// Send puts rows into the open transaction by the method, a batch or a commit group of them, and returns how many the
// server says it took, with its warnings.
type Send func(ctx context.Context) (rows int64, warnings []string, err error)

// Load sends what ref names once, under a claim; wanted is how many rows that has to put in. What fails before the
// commit is certainly not applied; a commit whose answer is lost is unknown, and only then.
func Load(ctx context.Context, c Transaction, ref loader.Ref, wanted int64, send Send) (loader.Ack, error) {
	taken, rows, err := c.Claim(ctx, ref)
	if err != nil {
		return loader.Ack{}, giveUp(ctx, c, "claim", err)
	}
	if taken {
		// There is nothing to undo, and what a failed rollback means for the session its next statement will tell.
		_ = c.Rollback(ctx)
		return loader.Ack{Rows: rows, AlreadyApplied: true}, nil
	}
	rows, warnings, err := send(ctx)
	if err != nil {
		return loader.Ack{}, giveUp(ctx, c, "load", err)
	}
	// LOAD DATA LOCAL turns duplicate keys and bad values into warnings and calls it success, so the count is compared
	// while the transaction can still be rolled back.
	if rows != wanted || len(warnings) > 0 {
		err := &loader.RowsError{Sent: wanted, Acknowledged: rows, Detail: warnings}
		return loader.Ack{}, giveUp(ctx, c, "load", err)
	}
	if err := ctx.Err(); err != nil { // a commit that was never sent is no unknown one
		return loader.Ack{}, giveUp(ctx, c, "commit", err)
	}
	if err := c.Commit(ctx); err != nil {
		if known := (*loader.Error)(nil); errors.As(err, &known) {
			return loader.Ack{}, err
		}
		return loader.Ack{}, &loader.Error{Op: "commit", Applied: loader.Unknown, Err: err}
	}
	return loader.Ack{Rows: rows}, nil
}

// giveUp rolls back and returns the first error. A rollback that fails as well is no news: the server rolls back by
// itself when the connection ends, and the session finds out at its next statement.
func giveUp(ctx context.Context, c Transaction, op string, err error) error {
	_ = c.Rollback(ctx)
	return &loader.Error{Op: op, Applied: loader.No, Err: err}
}
