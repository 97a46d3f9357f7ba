package sqlload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Probe implements loader.Prober: it finds out whether a rollback undoes the claim and the batch's one row.
//
// A row with the key may be another application's, committed before or during the probe. Probe removes it only if the
// probe's claim exists as well and the row was accepted: both were committed together then. Any other row is left alone
// and an error.
func (t ClaimedTable) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	return t.ProbeBy(ctx, loader.RefOf(b), func(ctx context.Context) (Session, Send, error) {
		s, err := t.Open(ctx, c)
		return s, sending(s, b), err
	})
}

// ProbeBy is Probe by a session that open opens, with the function that sends the one row of ref over it.
func (t ClaimedTable) ProbeBy(
	ctx context.Context, ref loader.Ref, open func(context.Context) (Session, Send, error),
) (none loader.Proof, err error) {
	s, err := t.State()
	if err != nil {
		return none, err
	}
	ref.ID.Number = Probe
	if s.unsought() {
		open = withoutRow(ref, open)
	}
	rows, claims, err := t.countProbe(ctx, ref)
	if err != nil {
		return none, err
	}
	if rows > 0 {
		return none, s.notFree(ref.First, "there already")
	}
	var sent error
	if claims == 0 { // otherwise it has survived an earlier probe of the run
		sent = t.Failed("probe", sendAndRollBack(ctx, ref, open))
		if rows, claims, err = t.countProbe(ctx, ref); err != nil {
			return none, errors.Join(sent, err)
		}
	}
	var removed error
	if claims > 0 {
		var statements []string
		if sent == nil && rows == 1 {
			statements = append(statements, s.DeleteRow(ref.First))
		}
		removed = t.remove(ctx, append(statements, s.DeleteClaim(ref.ID.Run, ref.ID.Number)))
	}
	switch {
	case sent != nil || removed != nil:
		return none, errors.Join(sent, removed)
	case rows > 1:
		return none, s.notFree(ref.First, fmt.Sprintf("there %d times", rows))
	case rows == 1 && claims == 0:
		return none, s.notFree(ref.First, "there after the probe was rolled back; unless the table has no transactions")
	case rows == 1:
		return loader.Proof{Reason: "the load committed by itself: a row and its claim survived a rollback"}, nil
	case claims > 0:
		return loader.Proof{Reason: "a claim survived a rollback: the claim table has no transactions"}, nil
	}
	return loader.Proof{Transactional: true}, nil
}

// numbered lists the columns that the server numbers where the rows have no value, by itself or by a sequence as the
// default, and reports whether a value in one that the rows have moves its count.
func (s *State) numbered(all []Column) (names []string, moved bool) {
	for _, c := range all {
		ours := slices.ContainsFunc(s.Schema.Names(), func(name string) bool { return s.same(c.Name, name) })
		counts := c.Numbered != "" || strings.HasPrefix(strings.ToLower(c.Default), "nextval(")
		switch {
		case counts && !ours:
			names = append(names, c.Name)
		case c.Numbered == loader.AutoIncrement || c.Numbered == loader.AutoRandom: // an identity stays behind its values
			moved = true
		}
	}
	return names, moved
}

// unsought reports whether the probe's row is not looked for, and so not sent. A record of a file has no number to find
// it by, and to look twice among a billion rows without an index may take longer than the load.
func (s *State) unsought() bool { return s.longScan || s.Want.Records }

// withoutRow leaves the probe's row out. That the table has transactions is in the method's capabilities then, which
// the server's engine has decided.
func withoutRow(ref loader.Ref, open func(context.Context) (Session, Send, error)) func(context.Context) (Session, Send, error) {
	return func(ctx context.Context) (Session, Send, error) {
		s, _, err := open(ctx)
		return s, ClaimThen(s, func(context.Context) (int64, []string, error) { return ref.Rows, nil, nil }), err
	}
}

// countProbe counts the rows with the probe's key, unless that takes a long scan, and its claims.
func (t *Table) countProbe(ctx context.Context, ref loader.Ref) (rows, claims int64, err error) {
	err = t.do(ctx, "look for the probe", func(c Conn, s *State) error {
		found, err := Rows(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number))
		if err != nil {
			return err
		}
		claims = int64(len(found))
		if s.unsought() {
			return nil
		}
		rows, err = Number(ctx, c, s.SelectRow(ref.First))
		return err
	})
	return rows, claims, err
}

// sendAndRollBack does what a batch does, up to the commit.
func sendAndRollBack(ctx context.Context, ref loader.Ref, open func(context.Context) (Session, Send, error)) error {
	session, send, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	sent, err := send(ctx, ref)
	if err == nil && sent.Claimed {
		err = sent.compare(ref.Rows)
	}
	rollbackErr := session.Rollback(ctx)
	switch {
	case err != nil:
		return err
	case sent.Claimed:
		return rollbackErr
	case !sent.Taken: // another process begins the run as well
		err = session.WhyNot(ctx)
	}
	return cmp.Or(err, errors.New("the probe's claim was not inserted: is another process of the run probing?"))
}

// remove runs statements, one transaction each.
func (t *Table) remove(ctx context.Context, statements []string) (all error) {
	for _, statement := range statements {
		all = errors.Join(all, t.do(ctx, "remove what is left of the probe", func(c Conn, _ *State) error {
			_, err := c.Exec(ctx, statement)
			return err
		}))
	}
	return all
}

func (s Statements) notFree(key int64, where string) error {
	return &loader.Error{
		Op: "probe", Applied: loader.No,
		Err: fmt.Errorf("the row with key %d of table %s, which the run would write, is %s: something else writes to the table",
			key, s.Table, where),
		Hint: "stop it, choose another --table or --first-key, or --delivery at-least-once for a table without transactions",
	}
}
