// Package sqlload does once what every SQL back-end needs: it creates and checks the target table, loads batches under
// claims exactly once, finds out what became of a batch, counts and reads rows, and asks the doctor's questions.
//
// A back-end gives a Dialect (data: quoting, types, expressions), a Catalog (queries of its system catalog, and its
// DDL), a Conn over its driver and a list of Checks. With transactions it gives Claims and a Session as well, and
// embeds a ClaimedTable; without, a *Table. Its sessions send rows in their own way.
package sqlload

import (
	"context"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Transaction is a session that loads under claims. Its errors carry the server's own words.
type Transaction interface {
	// Claim begins a transaction and inserts the claim row. taken reports whether the row exists already; rows is then
	// its count of rows.
	Claim(ctx context.Context, ref loader.Ref) (taken bool, rows int64, err error)
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

// ClaimBy is Claim by the statements that begin a transaction and insert the claim.
func (t Tx) ClaimBy(
	ctx context.Context, s Statements, ref loader.Ref, insert ...string,
) (taken bool, rows int64, err error) {
	for _, statement := range insert {
		if _, err = t.Conn.Exec(ctx, statement); err != nil {
			break
		}
	}
	if err == nil || !t.Taken(err) {
		return false, 0, err
	}
	rows, err = Number(ctx, t.Conn, s.SelectClaim(ref.ID.Run, ref.ID.Number))
	return true, rows, err
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
	// Rows puts a batch into the open transaction, and returns how many rows the server says it took, with its warnings.
	Rows(ctx context.Context, b *batch.Batch) (rows int64, warnings []string, err error)
}

// LoadBatch is Load for a batch.
func LoadBatch(ctx context.Context, s Session, b *batch.Batch) (loader.Ack, error) {
	return Load(ctx, s, loader.RefOf(b), b.Wanted(), sending(s, b))
}

func sending(s Session, b *batch.Batch) Send {
	return func(ctx context.Context) (int64, []string, error) { return s.Rows(ctx, b) }
}

// Insert sends a batch's rows in one statement behind its head. The text is a copy: drivers take statements as strings.
func Insert(ctx context.Context, c Conn, head string, b *batch.Batch) (rows int64, err error) {
	body := b.Open()
	defer func() { _ = body.Close() }()
	var text strings.Builder // its String makes no copy
	text.Grow(len(head) + int(body.Size()))
	text.WriteString(head)
	if _, err := body.WriteTo(&text); err != nil {
		return 0, err
	}
	return c.Exec(ctx, text.String())
}

// Send puts a batch or a commit group into the open transaction, and returns how many rows the server says it took,
// with its warnings.
type Send func(ctx context.Context) (rows int64, warnings []string, err error)

// Load sends ref once, as one transaction: claim, load, commit. The claim comes first so that an attempt that overlaps
// an earlier one of the same batch waits for the claim's key, or fails there, before it has sent a row. want is the
// number of rows that the server has to take. An error before the commit means not applied; a lost answer to the commit
// means unknown.
func Load(ctx context.Context, c Transaction, ref loader.Ref, want int64, send Send) (loader.Ack, error) {
	taken, rows, err := c.Claim(ctx, ref)
	if err != nil {
		return loader.Ack{}, rollBack(ctx, c, "claim", err)
	}
	if taken {
		_ = c.Rollback(ctx) // nothing to undo; the next statement reports a broken session
		return loader.Ack{Rows: rows, AlreadyApplied: true}, nil
	}
	rows, warnings, err := send(ctx)
	if err != nil {
		return loader.Ack{}, rollBack(ctx, c, "load", err)
	}
	// LOAD DATA LOCAL turns duplicate keys and bad values into warnings and reports success, so rows are compared while
	// the transaction can still be rolled back.
	if rows != want || len(warnings) > 0 {
		return loader.Ack{}, rollBack(ctx, c, "load", &loader.RowsError{Sent: want, Acknowledged: rows, Detail: warnings})
	}
	if err := ctx.Err(); err != nil { // a commit that was never sent is not unknown
		return loader.Ack{}, rollBack(ctx, c, "commit", err)
	}
	if err := c.Commit(ctx); err != nil {
		return loader.Ack{}, loader.Mark("commit", loader.Unknown, err)
	}
	return loader.Ack{Rows: rows}, nil
}

// rollBack returns err. It ignores the rollback's own error: the server rolls back when the connection ends, and the
// session's next statement fails.
func rollBack(ctx context.Context, c Transaction, op string, err error) error {
	_ = c.Rollback(ctx)
	return &loader.Error{Op: op, Applied: loader.No, Err: err}
}
