package sqlload

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
)

// Trial is what a probe needs of a back-end.
type Trial struct {
	// Look counts the rows that have the probe's key and the claims of the probe, outside of Send's transaction.
	Look func(ctx context.Context, rows, claims string) (foundRows, foundClaims int64, err error)
	// Send claims, sends the one row and rolls back.
	Send func(ctx context.Context) error
	// Remove runs a DELETE in a transaction of its own.
	Remove func(ctx context.Context, statement string) error
}

// Probe finds out whether a rollback takes back the claim and the one row of ref, whose batch number is Probe.
//
// A row with the key may be somebody's: there before, or committed while the probe ran, as by an application that takes the
// next number of the same table. It is removed only where the probe's claim is in, too, and its row was accepted: then the
// transaction of both was committed. Any other row is left alone and is an error.
func (s Statements) Probe(ctx context.Context, ref loader.Ref, t Trial) (loader.Proof, error) {
	look := func() (rows, claims int64, err error) {
		return t.Look(ctx, s.SelectRow(ref.First), s.SelectClaim(ref.ID.Run, ref.ID.Number))
	}
	rows, claims, err := look()
	if err != nil {
		return loader.Proof{}, err
	}
	if rows > 0 {
		return loader.Proof{}, s.notFree(ref.First, "there already")
	}
	var sent error
	if claims == 0 { // else it has survived an earlier probe of the run
		sent = t.Send(ctx)
		if rows, claims, err = look(); err != nil {
			return loader.Proof{}, errors.Join(sent, err)
		}
	}
	var removed error
	if sent == nil && rows == 1 && claims > 0 {
		removed = t.Remove(ctx, s.DeleteRow(ref.First))
	}
	if claims > 0 {
		removed = errors.Join(removed, t.Remove(ctx, s.DeleteClaim(ref.ID.Run, ref.ID.Number)))
	}
	switch {
	case sent != nil || removed != nil:
		return loader.Proof{}, errors.Join(sent, removed)
	case rows > 1:
		return loader.Proof{}, s.notFree(ref.First, fmt.Sprintf("there %d times", rows))
	case rows == 1 && claims == 0:
		return loader.Proof{}, s.notFree(ref.First, "there after the probe was rolled back; unless the table has no transactions")
	}
	switch {
	case rows > 0 && claims > 0:
		return loader.Proof{Reason: "the load committed by itself: a row and its claim survived a rollback"}, nil
	case claims > 0:
		return loader.Proof{Reason: "a claim survived a rollback: the claim table has no transactions"}, nil
	}
	return loader.Proof{Transactional: true}, nil
}

func (s Statements) notFree(key int64, where string) error {
	return &loader.Error{
		Op: "probe", Applied: loader.No,
		Err:  fmt.Errorf("the row with key %d of table %s, which is to be the run's, is %s: something else writes to the table", key, s.Table, where),
		Hint: "stop it, choose another --table or --first-key, or --delivery at-least-once for a table without transactions",
	}
}
