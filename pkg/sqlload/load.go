// Package sqlload does once what every SQL back-end needs: it creates and checks the target table, loads batches under
// claims exactly once, finds out what became of a batch, counts and reads rows, and asks the doctor's questions.
//
// A back-end gives a Dialect (data: quoting, types, expressions), a Catalog (queries of its system catalog, and its
// DDL), a Conn over its driver and a list of Checks. With transactions it gives Claims and a Session as well, and
// embeds a ClaimedTable; without, a *Table. Its sessions send rows in their own way.
package sqlload

import (
	"context"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Transaction is a session that loads under claims. Its errors carry the server's own words.
type Transaction interface {
	// Claim begins a transaction and inserts the claim row. Neither Claimed nor Taken means that this process may not write.
	Claim(ctx context.Context, ref loader.Ref) (Sent, error)
	// WhyNot returns why it may not write, as ClaimedTable.WhyNot does.
	WhyNot(ctx context.Context) error
	// Commit ends the transaction. An error means unknown, unless it is a *loader.Error.
	Commit(ctx context.Context) error
	// Rollback ends the transaction; if that fails the session must not be used again.
	Rollback(ctx context.Context) error
}

// Tx has methods of Transaction in plain SQL, over a Conn.
type Tx struct {
	Conn  Conn
	Taken func(error) bool // whether the key of a claim is there already
}

// ClaimBy is Claim by the statement that inserts the claim, and begins a transaction: autocommit is off, or a BEGIN in it.
func (t Tx) ClaimBy(ctx context.Context, s Statements, ref loader.Ref, insert string) (Sent, error) {
	n, err := t.Conn.Exec(ctx, insert)
	if err == nil {
		return Sent{Claimed: n == 1}, nil
	}
	if !t.Taken(err) {
		return Sent{}, err
	}
	_ = t.Rollback(ctx) // nothing to undo; the next statement reports a broken session
	rows, err := Number(ctx, t.Conn, s.SelectClaim(ref.ID.Run, ref.ID.Number))
	return Sent{Taken: true, Rows: rows}, err
}

// Commit implements Transaction.
func (t Tx) Commit(ctx context.Context) error {
	_, err := t.Conn.Exec(ctx, "COMMIT")
	return err
}

// Rollback implements Transaction. If it cannot be sent, as after ctx has ended between two statements, it closes the
// connection: the next batch would become part of the same transaction.
func (t Tx) Rollback(ctx context.Context) error {
	_, err := t.Conn.Exec(ctx, "ROLLBACK")
	if err != nil {
		_ = t.Conn.Close()
	}
	return err
}

// Session is a worker's connection, which loads under claims.
type Session interface {
	loader.Session
	Transaction
	// Send is a Send of a batch, claimed as ref.
	Send(ctx context.Context, ref loader.Ref, b *batch.Batch) (Sent, error)
}

// LoadBatch is Load for a batch.
func LoadBatch(ctx context.Context, s Session, b *batch.Batch) (loader.Ack, error) {
	return Load(ctx, s, loader.RefOf(b), sending(s, b))
}

func sending(s Session, b *batch.Batch) Send {
	return func(ctx context.Context, ref loader.Ref) (Sent, error) { return s.Send(ctx, ref, b) }
}

// Send begins a transaction, claims a batch or a commit group in it, and puts its rows in.
type Send func(ctx context.Context, ref loader.Ref) (Sent, error)

// Sent is what a Send has done.
type Sent struct {
	Claimed  bool     // the transaction has the claim, whatever became of the rows
	Taken    bool     // the claim existed already; the transaction has ended
	Rows     int64    // that the server says it took; if Taken those of the claim that exists
	Warnings []string // of the server
}

// Put puts rows into the open transaction, and returns how many the server says it took, with its warnings.
type Put func(ctx context.Context) (rows int64, warnings []string, err error)

// ClaimThen claims, waits for the answer, and then puts the rows in.
func ClaimThen(c Transaction, put Put) Send {
	return func(ctx context.Context, ref loader.Ref) (Sent, error) {
		sent, err := c.Claim(ctx, ref)
		if err != nil {
			return Sent{}, err
		}
		if !sent.Claimed {
			return sent, nil
		}
		sent.Rows, sent.Warnings, err = put(ctx)
		return sent, err
	}
}

// Load sends ref once, as one transaction: claim, load, commit. The claim comes first so that an attempt that overlaps
// an earlier one of the same batch waits for the claim's key, or fails there, before a row goes in. The server has to take
// ref.Rows rows. An error before the commit means not applied; a lost answer to the commit means unknown.
func Load(ctx context.Context, c Transaction, ref loader.Ref, send Send) (loader.Ack, error) {
	sent, err := send(ctx, ref)
	switch {
	case err == nil && sent.Taken:
		return loader.Ack{Rows: sent.Rows, AlreadyApplied: true}, nil
	case err == nil && !sent.Claimed:
		_ = c.Rollback(ctx)
		return loader.Ack{}, &loader.Error{Op: "claim", Applied: loader.No, Err: c.WhyNot(ctx)}
	case !sent.Claimed:
		return loader.Ack{}, rollBack(ctx, c, "claim", err)
	case err != nil:
		return loader.Ack{}, rollBack(ctx, c, "load", err)
	}
	// LOAD DATA LOCAL turns duplicate keys and bad values into warnings and reports success, so rows are compared while
	// the transaction can still be rolled back.
	if err := sent.compare(ref.Rows); err != nil {
		return loader.Ack{}, rollBack(ctx, c, "load", err)
	}
	if err := ctx.Err(); err != nil { // a commit that was never sent is not unknown
		return loader.Ack{}, rollBack(ctx, c, "commit", err)
	}
	if err := c.Commit(ctx); err != nil {
		return loader.Ack{}, loader.Mark("commit", loader.Unknown, err)
	}
	return loader.Ack{Rows: sent.Rows}, nil
}

// compare returns a *loader.RowsError unless the server took the wanted rows and said nothing about them.
func (s Sent) compare(want int64) error {
	if s.Rows == want && len(s.Warnings) == 0 {
		return nil
	}
	return &loader.RowsError{Sent: want, Acknowledged: s.Rows, Detail: s.Warnings}
}

// rollBack returns err. It ignores the rollback's own error: the server rolls back when the connection ends, and the
// session's next statement fails.
func rollBack(ctx context.Context, c Transaction, op string, err error) error {
	_ = c.Rollback(ctx)
	return &loader.Error{Op: op, Applied: loader.No, Err: err}
}
