package oracle

import (
	"context"
	"errors"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// codeNameTaken is what CREATE TABLE fails with where something has the name.
const codeNameTaken = 955

// CreateClaims implements sqlload.Claims.
func (l catalog) CreateClaims(s *sqlload.State) string { return l.statements(s).createClaims() }

// CheckClaims implements sqlload.Claims.
func (l catalog) CheckClaims(ctx context.Context, c sqlload.Conn, s *sqlload.State) (bool, error) {
	r, err := relationOf(ctx, c, s.Claims)
	if err != nil || r == nil {
		return false, err
	}
	if r.Kind != "" {
		return false, refuse("rename or drop it, or choose another schema", "the claim table %s is a %s", s.Claims, r.Kind)
	}
	key, err := keyed(ctx, c, r, "RUN", "BATCH")
	if err == nil && !key {
		err = refuse("drop it if no run needs it any more, and the next one makes it anew",
			"the claim table %s has no unique key on exactly (run, batch) that is checked at once: a batch could be claimed "+
				"twice", s.Claims)
	}
	return true, err
}

// Serialize implements sqlload.Claims: a run holds the claim table to itself from the first look to the commit. What other
// runs have in the memory of Fast Ingest counts, and is not seen there.
func (l catalog) Serialize(ctx context.Context, c sqlload.Conn, s *sqlload.State, reserve func() error) error {
	k := c.(*link)
	if s.Flush != "" {
		_, _ = k.exec(ctx, s.Flush)
	}
	if err := k.begin(ctx); err != nil {
		return err
	}
	if _, err := k.exec(ctx, l.statements(s).lockClaims()); err != nil {
		return err
	}
	if err := reserve(); err != nil {
		return err
	}
	return k.commit(ctx)
}

// EndOthers implements sqlload.Claims. It ends no sessions, which would take the privilege ALTER SYSTEM.
func (l catalog) EndOthers(context.Context, *sqlload.State, loader.Ref) error { return nil }

// ResolveBatch implements sqlload.Claims. It waits until no earlier attempt can change anything any more, and then looks.
//
// What it finds is final because a session sends COMMIT only after the answers to everything before it: an attempt that
// may still commit holds its claim, or its row, already. A claim that goes in says that none has committed, and none can any
// more: a transaction which comes later waits for this one, or finds no claim and is new. The lock on the table, where there
// are no claims, waits for all who have uncommitted rows there. Both are taken back.
func (l catalog) ResolveBatch(ctx context.Context, c sqlload.Conn, s *sqlload.State, ref loader.Ref) (loader.Resolution, error) {
	k, st := c.(*link), l.statements(s)
	if s.Want.Contract.Dedup == loader.DedupRange {
		err := k.begin(ctx)
		if err == nil {
			_, err = k.exec(ctx, st.lockTable())
		}
		if err != nil {
			return loader.Resolution{}, k.inVain("wait for those who write to "+s.Table, err)
		}
		return s.ResolveFront(ctx, c, s.SelectSpan(batchRange(ref)), ref)
	}
	taken, err := k.insertClaim(ctx, st, ref)
	switch {
	case err != nil:
		return loader.Resolution{}, k.inVain("wait for the claim of the batch", err)
	case !taken:
		return loader.Resolution{Applied: loader.No}, k.rollback(ctx)
	}
	found, err := s.FindClaim(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number), ref)
	if err == nil && found.Applied == loader.No {
		err = sqlload.ErrClaimVanished
	}
	return found, err
}

func batchRange(r loader.Ref) loader.KeyRange {
	return loader.KeyRange{First: r.First, Last: r.First + r.Rows - 1}
}

// insertClaim begins a transaction with the claim of a batch, and reports whether it is taken. It waits as long as an
// earlier transaction holds the claim: the key itself does.
func (k *link) insertClaim(ctx context.Context, s statements, ref loader.Ref) (taken bool, err error) {
	if err := k.begin(ctx); err != nil {
		return false, err
	}
	_, err = k.execPrepared(ctx, &k.claim, s.claim(), ref.ID.Run, ref.ID.Number, ref.First, ref.Rows)
	if k.is(err, codeUnique) {
		return true, nil
	}
	return false, err
}

// inVain is the error of a look that waits for an earlier attempt. Where that has not ended in time, the server may not
// have noticed that its client is gone: nothing but these two settings makes it look, or end a session that others wait for.
func (k *link) inVain(op string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !k.is(err, codeBusy, codeWaitedForLock) {
		return failed(op, err)
	}
	return &loader.Error{
		Op: op, Applied: loader.Unknown, Err: err,
		Hint: "an earlier attempt is still open on the server: SQLNET.EXPIRE_TIME in its sqlnet.ora has it notice that a client is " +
			"gone, and MAX_IDLE_BLOCKER_TIME has it end idle sessions that others wait for",
	}
}
