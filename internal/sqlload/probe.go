package sqlload

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
)

// Session is a session that loads under claims, as a probe needs it.
type Session interface {
	Transaction
	Close() error
}

// Probe implements loader.Prober: it finds out whether a rollback takes back the claim and the one row of ref. open opens a
// session, with the function that sends the row over it.
//
// A row with the key may be somebody's: there before, or committed while the probe ran, as by an application that takes the
// next number of the same table. It is removed only where the probe's claim is in, too, and its row was accepted: then the
// transaction of both was committed. Any other row is left alone and is an error.
func (t ClaimedTable) Probe(ctx context.Context, ref loader.Ref, open func(context.Context) (Session, Send, error)) (loader.Proof, error) {
	s, err := t.State()
	if err != nil {
		return loader.Proof{}, err
	}
	ref.ID.Number = Probe
	rows, claims, err := t.lookForProbe(ctx, s, ref)
	if err != nil {
		return loader.Proof{}, err
	}
	if rows > 0 {
		return loader.Proof{}, s.notFree(ref.First, "there already")
	}
	var sent error
	if claims == 0 { // else it has survived an earlier probe of the run
		sent = t.Failed("probe", sendAndRollBack(ctx, ref, open))
		if rows, claims, err = t.lookForProbe(ctx, s, ref); err != nil {
			return loader.Proof{}, errors.Join(sent, err)
		}
	}
	var statements []string
	if sent == nil && rows == 1 && claims > 0 {
		statements = append(statements, s.DeleteRow(ref.First))
	}
	if claims > 0 {
		statements = append(statements, s.DeleteClaim(ref.ID.Run, ref.ID.Number))
	}
	removed := t.remove(ctx, statements)
	switch {
	case sent != nil || removed != nil:
		return loader.Proof{}, errors.Join(sent, removed)
	case rows > 1:
		return loader.Proof{}, s.notFree(ref.First, fmt.Sprintf("there %d times", rows))
	case rows == 1 && claims == 0:
		return loader.Proof{}, s.notFree(ref.First, "there after the probe was rolled back; unless the table has no transactions")
	case rows > 0 && claims > 0:
		return loader.Proof{Reason: "the load committed by itself: a row and its claim survived a rollback"}, nil
	case claims > 0:
		return loader.Proof{Reason: "a claim survived a rollback: the claim table has no transactions"}, nil
	}
	return loader.Proof{Transactional: true}, nil
}

// lookForProbe counts the rows that have the probe's key, and its claims. On a table without an index on the key this is a
// scan.
func (t *Table) lookForProbe(ctx context.Context, s *State, ref loader.Ref) (rows, claims int64, err error) {
	err = t.on(ctx, func(c Conn) error {
		found, err := Rows(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number))
		if err != nil {
			return err
		}
		claims = int64(len(found))
		rows, err = Number(ctx, c, s.SelectRow(ref.First))
		return err
	})
	return rows, claims, t.Failed("look for the probe", err)
}

// sendAndRollBack does what a batch does, up to the commit.
func sendAndRollBack(ctx context.Context, ref loader.Ref, open func(context.Context) (Session, Send, error)) error {
	session, send, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	if _, _, err := session.Claim(ctx, ref); err != nil {
		_ = session.Rollback(ctx)
		return err
	}
	rows, warnings, err := send(ctx)
	if err == nil && (rows != ref.Rows || len(warnings) > 0) {
		err = &loader.RowsError{Sent: ref.Rows, Acknowledged: rows, Detail: warnings}
	}
	if err != nil {
		_ = session.Rollback(ctx)
		return err
	}
	return session.Rollback(ctx)
}

// remove runs statements that change something, one transaction each.
func (t *Table) remove(ctx context.Context, statements []string) error {
	var all error
	for _, statement := range statements {
		err := t.on(ctx, func(c Conn) error {
			_, err := c.Exec(ctx, statement)
			return err
		})
		all = errors.Join(all, t.Failed("remove what is left of the probe", err))
	}
	return all
}

func (s Statements) notFree(key int64, where string) error {
	return &loader.Error{
		Op: "probe", Applied: loader.No,
		Err:  fmt.Errorf("the row with key %d of table %s, which is to be the run's, is %s: something else writes to the table", key, s.Table, where),
		Hint: "stop it, choose another --table or --first-key, or --delivery at-least-once for a table without transactions",
	}
}
